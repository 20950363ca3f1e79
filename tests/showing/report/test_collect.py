"""Does a folder become the report of what it holds?"""

import dataclasses
from pathlib import Path

import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.folder import RunContents, contents_of, load_run, save_run
from perfkit.measuring.archive.scanfolder import create_scan
from perfkit.measuring.archive.storedscan import ScanHeader
from perfkit.measuring.experiment import open_run
from perfkit.measuring.scanning.grid import open_scan_results
from perfkit.measuring.scanning.tour import Series, Tour
from perfkit.resources import data_path
from perfkit.showing.report.collect import report_of_folder, report_of_run, report_of_scan, report_of_tour
from perfkit.showing.report.page import render_report

TINY = data_path("runs", "v1-tiny")


def certificates(points, varied):
    """Points of the tests' JSON, as the certificates of a scan over these cells."""
    return [{**point, "varied": cell} for point, cell in zip(points, varied, strict=True)]


def make_scan(folder: Path, points, simulated=False, summary=None):
    """A finished scan whose points all hold the tiny run, certified as given."""
    contents: RunContents = contents_of(load_run(TINY))
    plan = {"points": [{"varied": point["varied"]} for point in points], "order": [list(range(len(points)))]}
    header = ScanHeader(id="planted", created="2026-01-02T03:04:05+00:00", simulated=simulated, plan=plan)
    with create_scan(folder, header) as writer:
        for part in writer.pending_parts():
            writer.save_part(part, contents)
        writer.finish(points, summary or {})
    return open_scan_results(folder)


def test_a_run_is_shown_with_its_flame_graph(tmp_path):
    report = report_of_folder(TINY)
    run = open_run(TINY)
    assert report == report_of_run(run)
    assert report.title == f"perfkit run: {run.stored.manifest.title}"
    assert report.scans[0]["series"][""][0]["varied"] == {"run": run.stored.manifest.id}
    assert [recording["mode"] for recording in report.flame["recordings"]] == ["default"]
    assert report.flame_missing_reason == ""
    assert report.environment == run.stored.manifest.environment


def test_a_run_without_stacks_says_why_there_is_no_flame_graph(tmp_path):
    bare = dataclasses.replace(contents_of(load_run(TINY)), stacks={})
    report = report_of_run(open_run(save_run(tmp_path / "bare", bare)))
    assert (report.flame, report.flame_missing_reason) == (None, "no stacks were recorded; perfkit profile does")


def test_a_scan_of_one_setting_is_one_curve_with_its_knee_and_best(tmp_path, points):
    workers = points["workers"]
    cells = [{"workers": 2**index} for index in range(len(workers))]
    knee = {"setting": "workers", "low": 2, "high": 4, "method": "planted"}
    scan = make_scan(tmp_path / "scan", certificates(workers, cells), summary={"knee": knee})
    report = report_of_folder(tmp_path / "scan")
    assert report == report_of_scan(scan)
    section = report.scans[0]
    assert (section["title"], section["varied"], section["knee"]) == ("Scan of workers", "workers", knee)
    assert section["series"] == {"": scan.points}
    assert section["fits"] == {"": scan.fits}
    assert section["best"] == scan.best()
    assert report.recommendation.startswith(("Recommended: workers ", "No point is fit"))
    assert report.flame_missing_reason == "a scan records no stacks; perfkit profile does"
    page = render_report(report)
    assert "Scan of workers" in page
    assert "No USL fit and no bounds: workers is no number of users;" in page


def test_the_points_of_a_grid_stand_on_one_axis_by_all_that_was_varied(tmp_path, points):
    cells = [{"workers": 1, "batch.max_size": 2}, {"workers": 4, "batch.max_size": 2}]
    scan = make_scan(tmp_path / "scan", certificates(points["workers"][:2], cells))
    section = report_of_scan(scan).scans[0]
    assert (section["title"], section["varied"]) == ("Scan of workers, batch.max_size", "point")
    shown = [point["varied"] for point in section["series"][""]]
    assert shown == [{"point": "workers=1, batch.max_size=2"}, {"point": "workers=4, batch.max_size=2"}]
    assert render_report(report_of_scan(scan))


def test_a_scan_that_varied_nothing_is_a_report_too(tmp_path, points):
    scan = make_scan(tmp_path / "scan", certificates(points["workers"][:1], [{}]), simulated=True)
    report = report_of_scan(scan)
    assert report.scans[0]["title"] == "Scan of one setting"
    assert report.simulated is True
    assert render_report(report)


def tour_of(tmp_path, points, labels=("short queries", "mixed lengths"), final=True):
    short, mixed = points["short"], points["mixed"]
    cells = [{"workers": 2, "batch.max_size": 2**index, "payloads": labels[0]} for index in range(len(short))]
    cells += [{"workers": 2, "batch.max_size": 2**index, "payloads": labels[1]} for index in range(len(mixed))]
    scan = make_scan(tmp_path / "scan", certificates(short + mixed, cells))
    places = tuple(range(len(short))), tuple(range(len(short), len(short) + len(mixed)))
    series = (
        Series(label=labels[0], varied="workers", indices=places[0][:1]),
        Series(label=labels[0], varied="batch.max_size", indices=places[0]),
        Series(label=labels[1], varied="batch.max_size", indices=places[1]),
    )
    compared = certificates([short[0], short[3]], [{"setting": "default"}, {"setting": "recommended"}])
    return Tour(
        folder=tmp_path,
        scan=scan,
        series=series,
        best=None,
        stacks=open_run(TINY),
        stacks_missing="",
        final=make_scan(tmp_path / "final", compared) if final else None,
    )


def test_a_tour_is_one_section_a_setting_with_a_curve_for_each_set_of_payloads(tmp_path, points):
    report = report_of_tour(tour_of(tmp_path, points))
    assert [(section["title"], list(section["series"])) for section in report.scans] == [
        ("Scan of workers (short queries)", [""]),
        ("Scan of batch.max_size", ["short queries", "mixed lengths"]),
    ]
    curve = report.scans[1]["series"]["mixed lengths"]
    assert [point["varied"] for point in curve] == [{"batch.max_size": 2**index} for index in range(len(curve))]
    assert set(report.scans[1]["knee"]) <= {"short queries", "mixed lengths"}
    assert list(report.comparison) == ["default", "recommended"]
    assert report.comparison_verdict.partition(":")[0].startswith(("Confirmed", "Refuted", "Inconclusive"))
    assert report.recommendation.startswith("No point is fit to be recommended")
    assert report.flame["title"] == report.title.removeprefix("perfkit demo: ")
    assert render_report(report)


def test_a_tour_that_compared_nothing_says_why(tmp_path, points):
    report = report_of_tour(tour_of(tmp_path, points, final=False))
    why = "Nothing was compared with the default: no point could be recommended."
    assert (report.comparison, report.comparison_verdict) == (None, why)
    assert render_report(report)


def test_a_round_of_an_unfinished_scan_has_no_point_to_report(tmp_path):
    contents = contents_of(load_run(TINY))
    bare = dataclasses.replace(contents, manifest=dataclasses.replace(contents.manifest, certificate=None))
    with pytest.raises(ArchiveError, match="is one round of a scan that is not finished"):
        report_of_folder(save_run(tmp_path / "part", bare))


def test_a_folder_that_holds_nothing_is_wrong_use_and_a_damaged_one_is_not(tmp_path):
    with pytest.raises(ConfigError, match="holds no demo, scan, run or comparison; perfkit runs list FOLDER lists"):
        report_of_folder(tmp_path)
    (tmp_path / "scan.json").write_text("{")
    with pytest.raises(ArchiveError, match="is not whole JSON"):
        report_of_folder(tmp_path)
