"""How is an imported file shown on the command line? Its facts, then its levels, profiles and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from perfkit.measuring.importers.imported import Imported, Level, Profile
from perfkit.showing.cli import console
from perfkit.units import ABSENT, format_duration, format_number, format_percent, format_rate

_LEVELS = 60  # rows of results that are shown
_METRICS = 40  # rows of a scrape that are shown
_SCOPES = {
    "request": "one latency a request",
    "window": "latencies per window of time",
    "cumulative": "latencies over the whole run",
    "none": "no latencies",
}
_BASES = {
    "scheduled": "counted from the scheduled send",
    "sent": "counted from the actual send: a stalled client hides its own waiting",
    "unknown": "counted from an instant the file does not name",
    "none": "",
}


def print_imported(imported: Imported) -> None:
    """All of one file."""
    console.say(f"\n{imported.path}", style="bold")
    for fact in facts(imported):
        console.say(fact, style="dim")
    out = console.results()
    if imported.levels:
        out.print(levels_table(imported))
    for level in imported.levels[:_LEVELS]:
        if level.reasons:
            console.say(f"{level.name}: {level.grade}: {level.reasons[0]}", style="dim")
    for profile in imported.profiles:
        out.print(_profile_table(profile))
    if imported.metrics:
        out.print(_metrics_table(imported))
    if imported.series:
        out.print(_series_table(imported))


def facts(imported: Imported) -> Iterator[str]:
    """Format, rows, unit, clock, what a latency is, and remarks of the reading."""
    rows, timing = imported.rows, imported.timing
    yield f"{imported.format}: {rows.read:,} rows read, {rows.kept:,} kept"
    for reason, count in rows.dropped.items():
        yield f"  {count:,} dropped: {reason}"
    scope = "values over time" if imported.series and not imported.levels else _SCOPES[timing.scope]
    latency = ", ".join(part for part in (scope, _BASES[timing.basis]) if part)
    yield f"unit {timing.unit} · clock: {timing.clock} · {latency}"
    yield from (f"note: {note}" for note in imported.notes)
    if imported.levels and all(level.grade is None for level in imported.levels):
        yield "no certificate: without single requests neither intervals nor a grade can be given"


def levels_table(imported: Imported) -> Table:
    """One row a level."""
    headings = ("row", "result", "clients", "requests", "errors", "rate", "mean", "P50", "P95", "P99", "max", "grade")
    table = _table(headings, words=("result", "grade"))
    for level in imported.levels[:_LEVELS]:
        table.add_row(*map(Text, _cells(level)))
    if len(imported.levels) > _LEVELS:
        table.caption = f"the first {_LEVELS} of {len(imported.levels):,}; --json has them all"
    return table


def _cells(level: Level) -> tuple[str, ...]:
    counts = (f"{value:,}" if value is not None else ABSENT for value in (level.requests, level.errors))
    row = ABSENT if level.row is None else str(level.row)
    clients = ABSENT if level.concurrency is None else f"{level.concurrency:g}"
    times = (level.mean_s, *(level.percentile(p) for p in (0.5, 0.95, 0.99)), level.max_s)
    return (
        row,
        level.name,
        clients,
        *counts,
        format_rate(level.throughput_rps),
        *map(format_duration, times),
        level.grade or ABSENT,
    )


def _profile_table(profile: Profile) -> Table:
    table = _table(("alone", "with callees", "count", profile.name), words=(profile.name,))
    for weight in profile.top:
        shares = (_share(weight.own, profile), _share(weight.total, profile))
        table.add_row(*map(Text, (*shares, f"{weight.count:,}", weight.name)))
    table.caption = f"{format_number(profile.total)} {profile.unit} in {profile.samples:,} samples"
    return table


def _share(value: float, profile: Profile) -> str:
    return format_percent(value / profile.total) if profile.total else ABSENT


def _metrics_table(imported: Imported) -> Table:
    table = _table(("value", "kind", "metric"), words=("kind", "metric"))
    for metric in imported.metrics[:_METRICS]:
        labels = ", ".join(f"{name}={value}" for name, value in metric.labels.items())
        table.add_row(*map(Text, (format_number(metric.value), metric.kind, f"{metric.name} {labels}".strip())))
    if len(imported.metrics) > _METRICS:
        table.caption = f"the first {_METRICS} of {len(imported.metrics):,}; --json has them all"
    return table


def _series_table(imported: Imported) -> Table:
    """Each series of each source by its extremes; all values are in --json."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in imported.series:
        found.setdefault((row.source, row.name, row.unit), []).append(row.value)
    table = _table(("source", "series", "unit", "values", "min", "mean", "max"), words=("source", "series", "unit"))
    for (source, name, unit), values in found.items():
        figures = map(format_number, (min(values), sum(values) / len(values), max(values)))
        table.add_row(*map(Text, (source, name, unit, f"{len(values):,}", *figures)))
    return table


def _table(headings: tuple[str, ...], words: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading in words else "right", overflow="fold")
    return table
