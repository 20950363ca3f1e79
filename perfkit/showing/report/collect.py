"""Which archived results go into a report, and what does it say about them? From results to pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.analysis.flame import flame_data
from perfkit.measuring.analysis.scaling.fits import fit_scaling
from perfkit.measuring.archive.folder import load_run
from perfkit.measuring.archive.format import COMPARISON_NAME
from perfkit.measuring.archive.storedcomparison import load_comparison
from perfkit.measuring.comparing.interleaving import open_comparison
from perfkit.measuring.experiment import Run, open_run
from perfkit.measuring.importers.foreignrun import is_foreign
from perfkit.measuring.importers.readback import open_import
from perfkit.measuring.scanning.grid import Scan, open_scan_results
from perfkit.measuring.scanning.tour import Series, Tour, open_tour
from perfkit.showing.plots.gpu import gpu_table
from perfkit.showing.report.advice import comparison_verdict, padding_remark, recommendation
from perfkit.showing.report.compared import render_comparison
from perfkit.showing.report.data import ReportData
from perfkit.showing.report.foreign import render_imports, section_of
from perfkit.showing.report.page import render_report


def page_of_folder(folder: Path) -> str:
    """The page of whatever a folder holds, an imported file or a comparison too; raises ConfigError, ArchiveError."""
    if (folder / COMPARISON_NAME).exists():
        return render_comparison(open_comparison(folder), load_comparison(folder).created)
    if (folder / "run.json").exists():
        stored = load_run(folder)
        if is_foreign(stored.manifest):
            return render_imports([section_of(open_import(stored), 0)], stored.manifest.created)
    return render_report(report_of_folder(folder))


def report_of_folder(folder: Path) -> ReportData:
    """The report of whatever a folder holds: a demo, a scan or a run; raises ConfigError, ArchiveError."""
    if (folder / "demo.json").exists():
        return report_of_tour(open_tour(folder))
    if (folder / "scan.json").exists():
        return report_of_scan(open_scan_results(folder))
    if (folder / "run.json").exists():
        return report_of_run(open_run(folder))
    raise ConfigError(f"{folder} holds no demo, scan, run or comparison; perfkit runs list FOLDER lists what there is")


def report_of_tour(tour: Tour) -> ReportData:
    """The demo's report."""
    first = tour.scan.run(0).stored.manifest
    simulated = tour.scan.stored.header.simulated
    compared = {str(point["varied"]["setting"]): point for point in tour.final.points} if tour.final else None
    remark = padding_remark({series.label: tour.points(series) for series in tour.series if series.varied != "workers"})
    return ReportData(
        title=f"perfkit demo: {first.title}",
        simulated=simulated,
        created=first.created,
        recommendation=" ".join(filter(None, [recommendation(tour.best), remark])),
        scans=_tour_scans(tour),
        flame=_flame(tour.stacks, first.title) if tour.stacks else None,
        flame_missing_reason=tour.stacks_missing,
        comparison=compared,
        comparison_verdict=comparison_verdict(compared) if compared else tour.final_missing,
        environment=first.environment,
    )


def report_of_scan(scan: Scan) -> ReportData:
    """A scan's report."""
    first = scan.run(0).stored.manifest
    names = list(scan.points[0]["varied"])
    section = {
        "title": f"Scan of {', '.join(names) or 'one setting'}",
        "varied": names[0] if len(names) == 1 else "point",
        "series": {"": scan.points if len(names) == 1 else _numbered(scan.points)},
        "knee": scan.knee,
        "fits": {"": scan.fits} if len(scan.points) > 1 else {},
        "best": scan.best(),
    }
    return ReportData(
        title=f"perfkit scan: {first.title}",
        simulated=scan.stored.header.simulated,
        created=first.created,
        recommendation=recommendation(scan.best()),
        scans=[section],
        flame_missing_reason="a scan records no stacks; perfkit profile does",
        environment=first.environment,
    )


def report_of_run(run: Run) -> ReportData:
    """A run's report: its ledger, and its flame graph when stacks were recorded."""
    manifest = run.stored.manifest
    if not run.point:
        raise ArchiveError(f"{run.folder} is one round of a scan that is not finished; report the scan, or --resume it")
    point = {**run.point, "varied": {"run": manifest.id}}
    return ReportData(
        title=f"perfkit run: {manifest.title}",
        simulated=manifest.simulated,
        created=manifest.created,
        recommendation="",
        scans=[
            {"title": "Run", "varied": "run", "series": {"": [point]}, "knee": None, "best": None},
            *_steps(run),
        ],
        flame=_flame(run, manifest.title),
        flame_missing_reason="" if run.stored.stacks else "no stacks were recorded; perfkit profile does",
        environment=manifest.environment,
        gpu=_gpu(run),
        remarks=manifest.notes,
    )


def _steps(run: Run) -> list[dict[str, Any]]:
    """A section with the steps at one level of a load that changes it, as a scan over the level."""
    named = {key: run.point[key] for key in ("settings", "simulated") if key in run.point}
    steps = [{**named, **step} for step in run.point.get("steps", ()) if "varied" in step]
    if not steps:
        return []
    varied = next(iter(steps[0]["varied"]))
    knee = run.point.get("knee")
    return [{"title": "Steps of the load", "varied": varied, "series": {"": steps}, "knee": knee, "best": None}]


def _tour_scans(tour: Tour) -> list[dict[str, Any]]:
    """One section a varied setting, with one curve per set of payloads."""
    sections: dict[str, list[Series]] = {}
    for series in tour.series:
        sections.setdefault(series.varied, []).append(series)
    return [_tour_section(tour, varied, curves) for varied, curves in sections.items()]


def _tour_section(tour: Tour, varied: str, curves: Sequence[Series]) -> dict[str, Any]:
    single = len(curves) == 1
    knees = {"" if single else series.label: tour.knee(series) for series in curves}
    label = f" ({curves[0].label})" if single and curves[0].label else ""
    return {
        "title": f"Scan of {varied}{label}",
        "varied": varied,
        "series": {"" if single else series.label: tour.points(series) for series in curves},
        "knee": knees[""] if single else {name: knee for name, knee in knees.items() if knee},
        "fits": {"" if single else series.label: fit_scaling(tour.points(series)).to_json() for series in curves},
        "best": None,
    }


def _numbered(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The points of a grid on one axis: each by all that was varied."""
    return [
        {**point, "varied": {"point": ", ".join(f"{name}={value}" for name, value in point["varied"].items()) or "1"}}
        for point in points
    ]


def _gpu(run: Run) -> dict[str, list[Any]] | None:
    """What the run's GPUs did over time; None where none was recorded."""
    if "series" not in run.stored.tables:
        return None
    table = gpu_table(run.table("series"), run.stored.manifest.simulated)
    return {str(name): column.tolist() for name, column in table.items()} if len(table) else None


def _flame(run: Run, title: str) -> dict[str, Any] | None:
    stacks = run.stacks()
    return flame_data(stacks, title, run.stored.manifest.simulated) if stacks else None
