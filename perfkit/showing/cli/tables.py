"""How is a list of points printed? One row a point, every figure with its interval, void shown as void."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from perfkit.measuring.analysis.flame import TopFrame
from perfkit.measuring.archive.runs import RunEntry
from perfkit.units import ABSENT, format_bytes, format_duration, format_interval, format_number, format_percent

_STYLES = {"sound": "green", "short": "yellow", "unsteady": "magenta", "void": "red"}


def points_table(points: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Throughput, quantiles with intervals, queue and batch wait, fill, cores, grade."""
    table = Table(title=title, title_justify="left", header_style="bold", pad_edge=False)
    names = list(points[0]["varied"]) if points else []
    for heading in (*names, "req/s", "P50", "P95", "P99", "queue wait", "batch wait", "fill", "cores", "grade"):
        table.add_column(heading, justify="left" if heading in ("grade", *names) else "right")
    for point in points:
        table.add_row(*_row(point, names))
    return table


def _row(point: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    latency, stages = point["latency_s"], point["stages_s"]
    waits = [stages.get("preprocess_wait"), stages.get("queue_wait")]
    queue_wait = sum(wait for wait in waits if wait is not None) if any(wait is not None for wait in waits) else None
    grade = point["grade"]
    return [
        *(str(point["varied"][name]) for name in names),
        _throughput(point["throughput_rps"]),
        *(_quantile(latency[name]) for name in ("p50", "p95", "p99")),
        format_duration(queue_wait),
        format_duration(stages.get("batch_wait")),
        format_percent(point["batch_fill_ratio"]),
        format_number(point["cpu_cores_used"]),
        f"[{_STYLES[grade]}]{grade}[/]",
    ]


def _throughput(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return ABSENT
    interval = format_interval(format_number(value["low"]), format_number(value["high"]))
    return f"{format_number(value['value'])} ({interval})"


def _quantile(quantile: Mapping[str, Any]) -> str:
    if quantile["value"] is None:
        if quantile["needs_s"] is not None:
            return f"needs {format_duration(quantile['needs_s'])}"
        return ABSENT
    low, high = format_duration(quantile["low"]), format_duration(quantile["high"])
    return f"{format_duration(quantile['value'])} ({format_interval(low, high)})"


def reasons(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why each point that is not sound is not, one line a reason."""
    lines = []
    for point in points:
        varied = ", ".join(f"{name}={value}" for name, value in point["varied"].items()) or "run"
        lines += [f"{varied}: {point['grade']}: {reason}" for reason in point["reasons"] if point["grade"] != "sound"]
    return lines


def frames_table(stacks: Mapping[str, Any], frames: Sequence[TopFrame]) -> Table:
    """The functions that hold the most samples of one recording."""
    facts = f"{stacks['sample_count']} samples, {stacks['rate_hz']} Hz, {stacks['error_count']} errors"
    table = Table(title=f"{stacks['mode']} ({facts})", title_justify="left", pad_edge=False)
    for heading in ("self", "total", "function"):
        table.add_column(heading, justify="left" if heading == "function" else "right")
    for frame in frames:
        table.add_row(format_percent(frame.self_ratio), format_percent(frame.total_ratio), escape(frame.name))
    return table


def runs_table(entries: Sequence[RunEntry]) -> Table:
    """What lies in the archive, newest first."""
    table = Table(pad_edge=False)
    for heading in ("id", "kind", "model", "points", "grades", "size", "state"):
        table.add_column(heading, justify="right" if heading in ("points", "size") else "left")
    for entry in entries:
        grades = ", ".join(f"{count} {grade}" for grade, count in entry.grades.items())
        model = f"{entry.model} (simulated)" if entry.simulated else entry.model
        state = f"{entry.state}: {entry.reason}" if entry.reason else entry.state
        cells = (entry.id, entry.kind, model, str(entry.points), grades, format_bytes(entry.bytes), state)
        table.add_row(*map(escape, cells))
    return table
