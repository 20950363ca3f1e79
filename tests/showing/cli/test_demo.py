"""Does the demo run from nothing in an empty folder, and can its results be found and read again?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.scanning import tour
from perfkit.measuring.scanning.tour import Pace, open_tour
from perfkit.showing.report.collect import report_of_folder

CELLS = [(1, 1), (2, 1), (2, 2)]


@pytest.fixture
def short(monkeypatch):
    """The same tour with fewer stops."""
    monkeypatch.setattr(tour, "WORKERS", (1, 2))
    monkeypatch.setattr(tour, "BATCH_SIZES", (1, 2))
    monkeypatch.setattr(tour, "SMOKE", Pace(point_s=0.1, rounds=1, stacks_s=0.2, final_s=0.2))


def files_below(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shortest(short, monkeypatch):
    """A single stop, and no profiler to be had; to be called once the longer one has been made."""

    def barred(*_):
        raise CollectorUnavailable("py-spy may not look; ask the owner of the machine")

    def install():
        monkeypatch.setattr(tour, "WORKERS", (2,))
        monkeypatch.setattr(tour, "BATCH_SIZES", (1,))
        monkeypatch.setattr(tour, "profile", barred)

    return install


def test_two_demos_in_a_row_leave_two_archives_the_latest_page_and_nothing_else(perfkit, shortest, tmp_path):
    first = perfkit("demo", "--smoke", "--model", "noop", "--json")
    document, points = first.document, first.points
    assert list(document)[:2] == ["schema", "simulated"]
    further = {"report", "recommendation", "verdict", "folder"}
    assert set(document) == {"schema", "simulated", "points", "knee", "knee_estimates", "fits", "best"} | further
    assert [(one["settings"]["workers"], one["settings"]["batch"]["max_size"]) for one in points] == CELLS
    assert document["report"] == "perfkit-demo/report.html"
    folder = Path(document["folder"])
    assert_is_read_back(folder, document)
    before = files_below(folder)

    shortest()
    second = perfkit("demo", "--smoke", "--model", "simulated:s001-a10")
    other = Path(second.out.splitlines()[-1].removeprefix("runs: "))
    assert second.err == ""
    assert "flame graph: not recorded: py-spy may not look; ask the owner of the machine\n" in second.out
    assert second.out.count(" · closed loop, 32 users · simulated\n") >= 2
    assert files_below(folder) == before
    assert os.listdir(tmp_path) == ["perfkit-demo"]
    assert sorted(os.listdir("perfkit-demo")) == sorted([folder.name, other.name, "report.html"])
    latest = Path("perfkit-demo/report.html").read_text()
    assert latest == (other / "report.html").read_text()
    assert "simulated" in latest
    assert "perfkit demo: noop" in (folder / "report.html").read_text()

    listed = perfkit("runs", "list", "perfkit-demo", "--json").document["runs"]
    assert {Path(run["path"]).parent for run in listed} == {folder, other}
    assert {(run["kind"], run["simulated"]) for run in listed} >= {("scan", False), ("scan", True)}
    again = perfkit("report", folder, "--out", "again.html")
    assert (again.code, again.out) == (0, "report: again.html\n")
    assert Path("again.html").read_text() == (folder / "report.html").read_text()


def assert_is_read_back(folder, document):
    """What lies on the disk is what was printed."""
    found = open_tour(folder)
    assert list(found.scan.points) == document["points"]
    assert all(point["certificate"]["entries"] for point in document["points"])
    assert [(series.varied, series.indices) for series in found.series] == [
        ("workers", (0, 1)),
        ("batch.max_size", (1, 2)),
    ]
    workers, sizes = found.series
    assert [point["varied"] for point in found.points(workers)] == [{"workers": 1}, {"workers": 2}]
    assert [point["varied"] for point in found.points(sizes)] == [{"batch.max_size": 1}, {"batch.max_size": 2}]
    assert (found.stacks is None) == bool(found.stacks_missing)
    if found.final is not None:
        assert [point["varied"]["setting"] for point in found.final.points] == ["default", "recommended"]
    report = report_of_folder(folder)
    assert (report.recommendation, report.comparison_verdict) == (document["recommendation"], document["verdict"])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["noop", "minilm"])
def test_the_smoke_demo_runs_in_an_empty_folder_as_a_command_of_its_own(tmp_path, model):
    done = subprocess.run(
        [sys.executable, "-m", "perfkit", "demo", "--smoke", "--model", model, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode in (0, 3), done.stderr) == (True, "")
    assert len(json.loads(done.stdout)["points"]) == {"noop": 8, "minilm": 13}[model]
    assert os.listdir(tmp_path) == ["perfkit-demo"]
