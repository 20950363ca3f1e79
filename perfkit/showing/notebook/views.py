"""Which pictures can a notebook ask for? Curve, ledger, heat map, timeline, GPU, flame graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.flame import flame_data
from perfkit.measuring.experiment import Run
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.profile import profile
from perfkit.measuring.scanning.contrast import Contrast
from perfkit.measuring.scanning.grid import USUAL_CONCURRENCY, Scan
from perfkit.measuring.scanning.tour import Tour
from perfkit.measuring.service import Service
from perfkit.showing.report.collect import report_of_run, report_of_scan

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from perfkit.showing.notebook.chart import Chart, Flame

Scans = Scan | Contrast | Mapping[str, Scan]
"""A scan, a contrast, or several scans of the same setting by a label each."""


def flame(target: Run | Tour | Service, load: Load | None = None, seconds: float = 3.0) -> Flame:
    """The flame graph of a profiled run or of a tour; a service is profiled first, `seconds` for each kind of samples.

    Raises ConfigError for a run without stacks, CollectorUnavailable when the service cannot be profiled.
    """
    from perfkit.showing.notebook.chart import Flame

    run = _profiled(target, load, seconds)
    stacks = run.stacks()
    if not stacks:
        raise ConfigError(
            f"run {run.folder.name} holds no stacks, because a profiler slows what it watches and so never runs "
            "beside a measurement; record them apart with perfkit.flame(service)"
        )
    manifest = run.stored.manifest
    return Flame(flame_data(stacks, manifest.title, manifest.simulated))


def _profiled(target: Run | Tour | Service, load: Load | None, seconds: float) -> Run:
    if isinstance(target, Service):
        return profile(target, load or ClosedLoop(concurrency=USUAL_CONCURRENCY), seconds)
    if isinstance(target, Run):
        return target
    if not isinstance(target, Tour):
        raise ConfigError(f"flame is given a {type(target).__name__}; it takes a service, a profiled run or a tour")
    if target.stacks is None:
        raise ConfigError(f"this tour has no flame graph: {target.stacks_missing}")
    return target.stacks


def curve(scans: Scans) -> Chart:
    """Throughput and latency over the varied setting, with the knee."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.scan import plot_scan, scan_table

    section = _section(scans)
    varied = section["varied"]
    table = scan_table(section["series"], varied)
    fits = (section.get("fits") or {}).get("") or {}
    return Chart(plot_scan(table, varied, knee=section["knee"], fits=fits.get("fits"), title=section["title"]))


def curve_of(contrast: Contrast, before: Contrast | None = None) -> go.Figure:
    """Throughput and latency of every side over the varied setting; those of `before` as faint lines behind."""
    from perfkit.showing.plots.scan import add_earlier, plot_scan, scan_table

    section = _section(contrast)
    table = scan_table(section["series"], section["varied"])
    figure = plot_scan(table, section["varied"], knee=section["knee"], title=section["title"])
    return figure if before is None else add_earlier(figure, table, scan_table(before.series, before.varied))


def ledger(result: Run | Scans) -> Chart:
    """Where the time of a request went, stage by stage, at each point."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.ledger import ledger_table, plot_ledger

    section = report_of_run(result).scans[0] if isinstance(result, Run) else _section(result)
    return Chart(plot_ledger(ledger_table(section["series"], section["varied"]), section["varied"]))


def heat(scan: Scan) -> Chart:
    """Throughput over a grid of two settings; raises ConfigError for any other scan."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.heat import heat_table, plot_heat

    table = heat_table(scan.points)
    names = list(scan.points[0]["varied"])
    model = scan.run(0).stored.manifest.title
    return Chart(plot_heat(table, names, title=f"{model}: throughput over {names[0]} and {names[1]}"))


def timeline(runs: Mapping[str, Run]) -> Chart:
    """Latency and replies over time of several runs, by label: for what is not steady."""
    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.timeline import plot_timeline, timeline_table

    manifests = [run.stored.manifest for run in runs.values()]
    table = timeline_table({label: run.table("requests") for label, run in runs.items()})
    simulated = any(manifest.simulated for manifest in manifests)
    titles = " / ".join(dict.fromkeys(manifest.title for manifest in manifests))
    return Chart(plot_timeline(table, title=f"{titles} over time", simulated=simulated))


def gpu(run: Run) -> Chart:
    """What the GPU did while a run went on: activity, memory, power, clock.

    Raises ConfigError that says why where none was recorded.
    """
    import pandas

    from perfkit.showing.notebook.chart import Chart
    from perfkit.showing.plots.gpu import plot_gpu

    report = report_of_run(run)
    if report.gpu is None:
        remarks = [remark for remark in report.remarks if remark.startswith("gpu: ")]
        raise ConfigError(f"run {run.folder.name} holds no GPU series; {'; '.join(remarks) or 'none was recorded'}")
    title = f"{run.stored.manifest.title}: GPU over time"
    return Chart(plot_gpu(pandas.DataFrame(report.gpu), title=title, simulated=report.simulated))


def _section(scans: Scans) -> Mapping[str, Any]:
    """Title, varied setting, points by label and knees of one scan or of several."""
    if isinstance(scans, Scan):
        return report_of_scan(scans).scans[0]
    if isinstance(scans, Contrast):
        model = scans.scan.points[0]["settings"]["model"]
        title = f"{model}: {' against '.join(scans.series)}"
        return {"title": title, "varied": scans.varied, "series": scans.series, "knee": scans.knees}
    parts = {label: report_of_scan(scan).scans[0] for label, scan in scans.items()}
    varied = {part["varied"] for part in parts.values()}
    if len(varied) != 1:
        raise ConfigError(
            f"the scans vary {', '.join(sorted(varied)) or 'nothing'}; give scans of one and the same setting"
        )
    return {
        "title": next(iter(parts.values()))["title"],
        "varied": varied.pop(),
        "series": {label: part["series"][""] for label, part in parts.items()},
        "knee": {label: part["knee"] for label, part in parts.items() if part["knee"]},
    }
