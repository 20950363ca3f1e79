"""How is a list of points printed? One row a point, each figure above its interval, void shown as void."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from perfkit.measuring.analysis.flame import TopFrame
from perfkit.measuring.archive.runs import RunEntry
from perfkit.showing.cli.console import varied_text
from perfkit.showing.report.rows import Figure, row_of
from perfkit.units import format_bytes, format_percent, format_rate

Points = Sequence[Mapping[str, Any]]

_STYLES = {"sound": "green", "short": "yellow", "unsteady": "magenta", "void": "red"}
_INTERVALS = ("throughput", "P50", "P95", "P99")
_PLAIN = ("queue\nwait", "batch\nwait", "fill", "CPU\ncores")
_MODES = {"default": "running threads", "gil": "threads that hold the GIL", "idle": "all threads, waiting ones too"}


def points_table(points: Points, title: str) -> Table:
    """Throughput and quantiles with intervals, queue and batch wait, fill, cores, grade."""
    table = _table(title)
    names = list(points[0]["varied"]) if points else []
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in _INTERVALS:
        table.add_column(name, justify="right")
    for name in _PLAIN:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("grade", no_wrap=True)
    for point in points:
        row = row_of(point, "", "")
        settings = (Text(str(point["varied"][name])) for name in names)
        table.add_row(*settings, *map(_cell, row.figures), Text(row.grade, style=_STYLES[row.grade]))
    return table


def loop_text(points: Points) -> str:
    """How the points were loaded, as far as they have it in common: `closed loop, 8 users`."""
    loads = [point["load"] for point in points]
    if loads[0]["loop"] == "open":
        rates = {load["rate_rps"] for load in loads}
        return f"open loop, {format_rate(rates.pop())}" if len(rates) == 1 else "open loop"
    users = {load["concurrency"] for load in loads}
    return f"closed loop, {users.pop()} in flight" if len(users) == 1 else "closed loop"


def _table(title: str) -> Table:
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_edge=False,
    )


def _cell(figure: Figure) -> Text:
    """The figure, and below it what is said about it, shortened to the width of a column."""
    cell = Text(figure.text)
    if figure.note:
        cell.append("\n" + figure.note.replace(" to ", "–").removeprefix("a value "), style="dim")
    return cell


def reasons(points: Points) -> list[str]:
    """The decisive reason of each point whose grade the table does not explain, one line a point."""
    return [
        f"{varied_text(point['varied'])}: {point['grade']}: {point['reasons'][0]}"
        for point in points
        if point["reasons"] and not _is_explained(point)
    ]


def _is_explained(point: Mapping[str, Any]) -> bool:
    """A short point says in its cells how many seconds its quantiles need."""
    return point["grade"] == "short" and any(one["needs_s"] is not None for one in point["latency_s"].values())


def frames_table(stacks: Mapping[str, Any], frames: Sequence[TopFrame]) -> Table:
    """The functions that hold the most samples of one recording."""
    facts = f"{stacks['sample_count']} samples at {stacks['rate_hz']} Hz, {stacks['error_count']} failed"
    table = _table(f"{_MODES[stacks['mode']]} ({stacks['mode']}) · {facts}")
    for heading in ("self", "total"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("function")
    for frame in frames:
        table.add_row(format_percent(frame.self_ratio), format_percent(frame.total_ratio), Text(frame.name))
    return table


def runs_table(entries: Sequence[RunEntry]) -> Table:
    """What lies in the archive."""
    table = _table("")
    for heading in ("folder", "kind", "model", "points", "grades", "size", "state"):
        table.add_column(heading, justify="right" if heading in ("points", "size") else "left")
    for entry in entries:
        grades = ", ".join(f"{count} {grade}" for grade, count in entry.grades.items())
        model = f"{entry.model or '–'}{' (simulated)' if entry.simulated else ''}"
        state = f"{entry.state}: {entry.reason}" if entry.reason else entry.state
        cells = (str(entry.path), entry.kind, model, str(entry.points), grades, format_bytes(entry.bytes), state)
        table.add_row(*map(Text, cells))
    return table
