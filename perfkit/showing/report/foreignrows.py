"""What does an imported file read like, as sentences and tables of texts, for the shell and the page alike?

A column that the file has nothing for is left out. Figures from single requests carry their interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.finding import Finding
from perfkit.measuring.importers.imported import Imported, Level, Metric, Profile, percent_name
from perfkit.showing.report.rows import Figure, TextTable
from perfkit.units import (
    ABSENT,
    format_bytes,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_quantity,
    format_rate,
)

_LEVELS = 60  # rows of results that are shown
_METRICS = 40  # rows of a scrape that are shown
_PERCENTILES = (0.5, 0.9, 0.95, 0.99)
_SCOPES = {
    "request": "one latency a request",
    "window": "latencies per window of time",
    "cumulative": "latencies over the whole run",
    "none": "no latencies",
}
_BASES = {
    "scheduled": "counted from the scheduled send",
    "sent": "counted from the actual send (a stalled client hides its own waiting)",
    "unknown": "counted from an instant that the file does not name",
    "none": "",
}
NO_CERTIFICATE = "no certificate: without single requests neither intervals nor a grade can be given"
NO_RESULTS = "There are no results of a load generator in it to audit."
NO_FINDING = "Nothing contradicts itself in this file (which does not make it true)."


def facts(imported: Imported) -> Iterator[str]:
    """Format, rows, unit, clock, what a latency is, and remarks of the reading."""
    rows, timing = imported.rows, imported.timing
    yield f"{imported.format}: {rows.read:,} {'row' if rows.read == 1 else 'rows'} read, {rows.kept:,} kept"
    yield from (f"  {count:,} dropped: {reason}" for reason, count in rows.dropped.items())
    scope = "values over time" if imported.series and not imported.levels else _SCOPES[timing.scope]
    latency = ", ".join(part for part in (scope, _BASES[timing.basis]) if part)
    unit = "" if timing.unit == "none" else f"unit {timing.unit} · "
    yield f"{unit}clock: {timing.clock} · {latency}"
    yield from (f"note: {note}" for note in imported.notes)
    if imported.levels and all(level.grade is None for level in imported.levels):
        yield NO_CERTIFICATE
    for level in imported.levels[:_LEVELS]:
        if level.reasons:
            yield f"{level.name}: {level.grade}: {level.reasons[0]}"


def tables(imported: Imported) -> Iterator[TextTable]:
    """Levels, profiles, series and metrics, whatever the file holds."""
    if imported.levels:
        yield levels_table(imported.levels)
    yield from map(_profile_table, imported.profiles)
    if imported.series:
        yield _series_table(imported.series)
    if imported.metrics:
        yield _metrics_table(imported)


def finding_text(finding: Finding) -> tuple[str, str, str]:
    """A finding as headline, figures, and the rule with its source."""
    where = "" if finding.row is None else f"row {finding.row}, "
    figures = ", ".join(_figure_text(name, value) for name, value in finding.figures.items())
    return f"{where}{finding.check}: {finding.claim}", figures, f"{finding.rule} ({finding.source})"


def _figure_text(name: str, value: float | None) -> str:
    """`mean_s` 0.0105 -> `mean 10.5 ms`."""
    if name.endswith("_s"):
        return f"{name[:-2].replace('_', ' ')} {format_duration(value)}"
    if name.endswith("_rps"):
        return f"{name[:-4].replace('_', ' ')} {format_rate(value)}"
    return f"{name.replace('_', ' ')} {ABSENT if value is None else _plain(value)}"


def levels_table(levels: Sequence[Level]) -> TextTable:
    """One row a level, the table's own row number first where it has one."""
    times = [percent_name(p).upper() for p in _PERCENTILES]
    headings = ("row", "result", "clients", "offered/s", "requests", "errors", "req/s", "mean", *times, "max", "grade")
    rows = [_level_row(level) for level in levels[:_LEVELS]]
    caption = "" if len(levels) <= _LEVELS else f"the first {_LEVELS} of {len(levels):,}; --json has them all"
    return _without_empty(
        TextTable(title="", headings=headings, rows=tuple(rows), words=("result", "grade"), caption=caption)
    )


def _level_row(level: Level) -> tuple[Figure, ...]:
    counts = (f"{value:,}" if value is not None else ABSENT for value in (level.requests, level.errors))
    texts = (
        ABSENT if level.row is None else str(level.row),
        level.name,
        ABSENT if level.concurrency is None else f"{level.concurrency:g}",
        format_number(level.offered_rps),
        *counts,
        format_number(level.throughput_rps),
        format_duration(level.mean_s),
    )
    quantiles = (_quantile(level, p) for p in _PERCENTILES)
    ends = (format_duration(level.max_s), level.grade or ABSENT)
    return (*(Figure(text=text) for text in texts), *quantiles, *(Figure(text=text) for text in ends))


def _quantile(level: Level, p: float) -> Figure:
    text, found = format_duration(level.percentile(p)), level.quantiles.get(p)
    if found is None or found.low is None:
        return Figure(text=text)
    low = format_duration(found.low)
    if found.value is None:
        return Figure(text=text, note=f"too few: {low} or more")
    return Figure(
        text=text, note=f"{low} or more" if found.high is None else format_interval(low, format_duration(found.high))
    )


def _profile_table(profile: Profile) -> TextTable:
    is_time = profile.unit == "s"
    headings = ("alone", "with callees", *(("alone, time",) if is_time else ()), "count", "name")
    rows = []
    for weight in profile.top:
        shares = (_share(weight.own, profile), _share(weight.total, profile))
        time = (format_duration(weight.own),) if is_time else ()
        rows.append(tuple(Figure(text=text) for text in (*shares, *time, f"{weight.count:,}", weight.name)))
    total = format_duration(profile.total) if is_time else f"{format_number(profile.total)} {profile.unit}"
    caption = f"{total} in {profile.samples:,} {'spans' if is_time else 'stacks'}"
    return TextTable(title=profile.name, headings=headings, rows=tuple(rows), words=("name",), caption=caption)


def _share(value: float, profile: Profile) -> str:
    return format_percent(value / profile.total) if profile.total else ABSENT


def _metrics_table(imported: Imported) -> TextTable:
    """The scrape without the buckets of its histograms: their percentiles are among the results."""
    shown = [metric for metric in imported.metrics if not metric.name.endswith("_bucket")]
    rows = []
    for metric in shown[:_METRICS]:
        labels = ", ".join(f"{name}={value}" for name, value in metric.labels.items())
        texts = (_metric_text(metric), metric.kind, f"{metric.name} {labels}".strip())
        rows.append(tuple(Figure(text=text) for text in texts))
    headings, hidden = ("value", "kind", "metric"), len(imported.metrics) - len(rows)
    caption = f"{hidden:,} more (buckets and the like) are in --json" if hidden else ""
    return TextTable(title="Metrics", headings=headings, rows=tuple(rows), words=("kind", "metric"), caption=caption)


def _metric_text(metric: Metric) -> str:
    if metric.name.endswith("_bytes"):
        return format_bytes(metric.value)
    is_time = metric.name.endswith("_seconds") and not metric.name.endswith("start_time_seconds")
    return format_duration(metric.value) if is_time else _plain(metric.value)


def _plain(value: float) -> str:
    """A count in full, anything else in three digits; a scrape may hold infinity."""
    return f"{value:,.0f}" if float(value).is_integer() else format_number(value)


def _series_table(series: Sequence[SeriesRow]) -> TextTable:
    """Each series of each source by its extremes; all values are in --json."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in series:
        found.setdefault((row.source, row.name, row.unit), []).append(row.value)
    rows = []
    for (source, name, unit), values in found.items():
        extremes = (min(values), sum(values) / len(values), max(values))
        texts = (source, name, f"{len(values):,}", *(_value_text(value, unit) for value in extremes))
        rows.append(tuple(Figure(text=text) for text in texts))
    headings = ("source", "series", "values", "min", "mean", "max")
    return TextTable(title="Series", headings=headings, rows=tuple(rows), words=("source", "series"))


def _value_text(value: float, unit: str) -> str:
    if unit == "ratio":
        return format_percent(value)
    if unit in ("bytes", "bytes/s"):
        return format_bytes(value) + unit.removeprefix("bytes")
    if unit == "s":
        return format_duration(value)
    if unit == "1/s":
        return f"{format_number(value)}/s"
    return format_quantity(value, unit) if unit in ("Hz", "W") else f"{format_number(value)} {unit}"


def _without_empty(table: TextTable) -> TextTable:
    """Without the columns that no row has anything for."""
    kept = [at for at, heading in enumerate(table.headings) if any(row[at].text != ABSENT for row in table.rows)]
    return TextTable(
        title=table.title,
        headings=tuple(table.headings[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
        words=table.words,
        caption=table.caption,
    )
