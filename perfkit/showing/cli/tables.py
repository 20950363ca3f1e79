"""How is a list of points printed? One row a point, each figure above its interval, void shown as void."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from perfkit.measuring.analysis.flame import TopFrame
from perfkit.measuring.archive.entries import RunEntry
from perfkit.measuring.scanning.grid import varied_text
from perfkit.showing.plots.points import count_text
from perfkit.showing.report.rows import Figure, row_of
from perfkit.units import (
    ABSENT,
    format_bytes,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_rate,
)

if TYPE_CHECKING:
    from perfkit.explaining.twin.calibrate import Calibration
    from perfkit.measuring.analysis.replicates import Between

Points = Sequence[Mapping[str, Any]]

_STYLES = {"sound": "green", "short": "yellow", "unsteady": "magenta", "void": "red"}
_ROOMY = 1000  # columns: more than any table wants
_MODES = {"default": "running threads", "gil": "threads that hold the GIL", "idle": "all threads, waiting ones too"}


def points_table(points: Points, title: str) -> Group:
    """Throughput and quantiles with intervals, queue and batch wait, fill, cores, grade."""
    table = _table()
    names = list(points[0]["varied"]) if points else []
    for name in names:
        table.add_column(name, no_wrap=True)
    for heading in ("req/s", "P50", "P95", "P99", "queue wait\nbatch wait", "fill\ncores"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("grade", no_wrap=True)
    for point in points:
        row = row_of(point, "", "")
        rate, p50, p95, p99, queue, batch, fill, cores = row.figures
        cells = (*map(_interval, (rate, p50, p95, p99)), _two(queue.text, batch.text), _two(fill.text, cores.text))
        settings = (Text(str(point["varied"][name])) for name in names)
        table.add_row(*settings, *cells, Text(row.grade, style=_STYLES[row.grade]))
    return _titled(title, table)


def _interval(figure: Figure) -> Text:
    """The figure, and below it its interval or what it would take, both as short as a column needs."""
    text = figure.text.removesuffix(" req/s").replace("at least ", "≥ ")
    return _two(text, figure.note.removeprefix("a value ").replace(" to ", "–"))


def _two(above: str, below: str) -> Text:
    return Text(above).append(f"\n{below}" if below else "", style="dim")


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)


def _titled(title: str, table: Table) -> Group:
    """With a line above; rich's own titles are broken to the width of the table."""
    return Group(Text(title, style="bold"), _Fitting(table))


class _Fitting:
    """A table whose columns move together where there is little room, before any figure is broken."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=_ROOMY), self._table).maximum
        if wanted > options.max_width:
            self._table.padding = (0, 0, 0, 0)
        yield self._table


def remarks(points: Points) -> list[str]:
    """What the table does not show of a point: failures, memory that ran out, the decisive reason of its grade."""
    lines = []
    for point in points:
        name = varied_text(point["varied"])
        if errors := row_of(point, "", "").errors:
            lines.append(f"{name}: failed of {count_text(point['requests'])} requests: {errors}")
        lines += [f"{name}: {text}" for text in _memory(point)]
        if point["reasons"] and not _is_explained(point):
            lines.append(f"{name}: {point['grade']}: {point['reasons'][0]}")
    return lines


def _memory(point: Mapping[str, Any]) -> list[str]:
    """That the device's memory ran out, and how small its batches are since; nothing when it never did."""
    memory = point.get("memory")
    if not memory or not memory["ooms"]:
        return []
    times, cap, most = memory["ooms"], memory["batch_cap"], point["settings"]["batch"]["max_size"]
    since = f"; a batch holds at most {cap} of {most} since" if cap < most else ""
    return [f"the device ran out of memory {times} time{'s' if times > 1 else ''}{since}"]


def _is_explained(point: Mapping[str, Any]) -> bool:
    """A short point says in its cells how many seconds its quantiles need."""
    return point["grade"] == "short" and any(one["needs_s"] is not None for one in point["latency_s"].values())


def between_table(between: Mapping[str, Between], processes: str) -> Group:
    """How far replicates are apart, beside how far apart their own intervals let one expect them to be."""
    table = _table()
    for heading in ("figure", "runs", "mean", "95 % interval of the mean", "spread", "max / min", "within a run"):
        table.add_column(heading, justify="left" if heading == "figure" else "right", no_wrap=True)
    table.add_column("")
    for name, one in between.items():
        text = format_rate if name.endswith("_rps") else format_duration
        ends = (one.mean.low, one.mean.high)
        interval = ABSENT if None in ends else format_interval(*map(text, ends))
        ratios = (_around(one.spread_ratio), format_number(one.extreme_ratio))
        remark = "runs differ more than their intervals say" if one.exceeds_within else ""
        cells = (name.rpartition("_")[0].upper() if name[0] == "p" else "throughput", str(one.n), text(one.mean.value))
        table.add_row(*map(Text, (*cells, interval, *ratios, _around(one.within_ratio), remark)))
    return _titled(f"between runs, {processes}: spread is one standard deviation, within a run half an interval", table)


def _around(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"±{format_percent(ratio)}"


def frames_table(stacks: Mapping[str, Any], frames: Sequence[TopFrame]) -> Group:
    """The functions that hold the most samples of one recording."""
    facts = f"{stacks['sample_count']} samples at {stacks['rate_hz']} Hz, {stacks['error_count']} failed"
    table = _table()
    for heading in ("self", "total"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("function")
    for frame in frames:
        table.add_row(format_percent(frame.self_ratio), format_percent(frame.total_ratio), Text(frame.name))
    return _titled(f"{_MODES[stacks['mode']]} ({stacks['mode']}) · {facts}", table)


def calibration_table(calibration: Calibration) -> Group:
    """What the preset says of each cell beside what was measured; cells that it was fitted to are no predictions."""
    table = _table()
    for heading in ("workers", "batch", "predicted", "measured", "error", "rounds apart"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("counts")
    for cell in calibration.cells:
        role = "fitted" if cell.is_fitted else "judged" if cell.is_judged else "not judged"
        error = ABSENT if cell.error_ratio is None else f"{cell.error_ratio:+.1%}"
        rates = map(format_rate, (cell.predicted_rps, cell.measured_rps))
        cells = (str(cell.workers), str(cell.max_size), *rates, error, format_percent(cell.spread_ratio), role)
        table.add_row(*map(Text, cells))
    fit = calibration.fit
    facts = f"{format_duration(fit.alpha_s.value)} + {format_duration(fit.beta_s.value)} a request"
    label = " · simulated" if calibration.is_simulated else ""
    title = f"{calibration.model} on {calibration.device}{label} · call {facts}"
    return _titled(f"{title} · residual {format_percent(fit.residual_ratio)}", table)


def runs_table(entries: Sequence[RunEntry]) -> Table:
    """What lies in the archive."""
    table = _table()
    for heading in ("folder", "kind", "model", "points", "size", "result"):
        justify: Literal["left", "right"] = "right" if heading in ("points", "size") else "left"
        table.add_column(heading, justify=justify, overflow="fold")
    for entry in entries:
        model = f"{entry.model or entry.title or ABSENT}{' (simulated)' if entry.simulated else ''}"
        cells = (str(entry.path), entry.kind, model, str(entry.points), format_bytes(entry.bytes), _result(entry))
        table.add_row(*map(Text, cells))
    return table


def _result(entry: RunEntry) -> str:
    if entry.reason:
        return f"{entry.state}: {entry.reason}"
    grades = ", ".join(f"{count} {grade}" for grade, count in entry.grades.items())
    return f"{grades} · pinned: {entry.pinned}" if entry.pinned else grades
