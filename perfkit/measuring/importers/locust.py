"""What do Locust's CSV files say?

`_stats.csv` covers the whole run: one row a request name and one for all (Aggregated). Failed requests
are in its counts and percentiles, and percentiles are rounded to two digits. In `_stats_history.csv`
the percentiles are those of a sliding window while the `Total …` columns count from the start: only the
latter can be compared, so each step of the user count becomes a level by their differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.source import Source

STATS_NAME, HISTORY_NAME = "Locust stats CSV", "Locust history CSV"
WHOLE = "Aggregated"
_STATS = {"type", "name", "average response time", "max response time"}
_HISTORY = {"timestamp", "user count", "total request count"}
_OLD = {"# requests": "request count", "# failures": "failure count"}
_NO_REQUEST = "row without a request (N/A means no data, not zero)"
_NO_NUMBER = "no number in its counts"
_OF_NAME = "row of one request name (Aggregated holds it)"
_ROUNDED = "percentiles are rounded to two significant digits by Locust"


def matches_stats(head: str) -> bool:
    """By the names of the columns."""
    return _names(head) >= _STATS


def matches_history(head: str) -> bool:
    """By the names of the columns."""
    return _names(head) >= _HISTORY


def read_stats(source: Source) -> Imported:
    """One level a row; rows without a request are dropped."""
    tally, levels = Tally(), []
    table = Table(source, tally)
    table.columns = [_OLD.get(name.lower(), name.lower()) for name in table.columns]
    percentiles = _percentile_columns(table.columns)
    for index, row in enumerate(table.rows(), 1):
        cells = dict(zip(table.columns, row, strict=True))
        level = _stats_level(index, cells, percentiles)
        if level is None:
            tally.dropped[_NO_REQUEST if number(cells.get("request count", "")) == 0 else _NO_NUMBER] += 1
        else:
            tally.kept += 1
            levels.append(level)
    notes = [*source.notes, _ROUNDED, "failed requests are in the counts and percentiles"]
    if not levels:
        notes.append("no request was sent: there is no latency and no rate")
    return Imported(
        path=str(source.path),
        format=STATS_NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="none", scope="cumulative", basis="sent"),
        levels=tuple(levels) or (Level(name=WHOLE, requests=0),),
        notes=tuple(notes),
    )


def read_history(source: Source) -> Imported:
    """The totals of each stretch with one user count; window percentiles are left out."""
    tally = Tally()
    table = Table(source, tally)
    ticks = list(_ticks(table, tally))
    levels = tuple(_stretch(first, last) for first, last in _stretches(ticks))
    notes = [*source.notes, "percentiles of a sliding window are left out: they cannot be added up to those of a run"]
    return Imported(
        path=str(source.path),
        format=HISTORY_NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="epoch, whole seconds", scope="window", basis="sent"),
        levels=(*levels, *(_whole(ticks) if ticks else ())),
        is_range=len(levels) > 1,
        notes=tuple(notes),
    )


def _names(head: str) -> set[str]:
    return {_OLD.get(name.lower(), name.lower()) for name in headings(head)}


def _percentile_columns(columns: Sequence[str]) -> dict[str, float]:
    """`99.9%` -> 0.999; 100 % is the maximum, rounded."""
    found = {name: number(name) for name in columns if name.endswith("%")}
    return {name: round(value / 100, 8) for name, value in found.items() if value is not None and value < 100}


def _stats_level(index: int, cells: dict[str, str], percentiles: dict[str, float]) -> Level | None:
    count, failed = number(cells.get("request count", "")), number(cells.get("failure count", ""))
    if not count or failed is None:
        return None
    times = {name: number(cells[name]) for name in percentiles}
    kind, name = cells["type"], cells["name"]
    return Level(
        name=f"{kind} {name}".strip(),
        row=index,
        loop="closed",
        requests=int(count),
        errors=int(failed),
        throughput_rps=number(cells.get("requests/s", "")),
        mean_s=_ms(number(cells["average response time"])),
        min_s=_ms(number(cells.get("min response time", ""))),
        max_s=_ms(number(cells["max response time"])),
        median_s=_ms(number(cells.get("median response time", ""))),
        percentiles_s={p: times_s for name, p in percentiles.items() if (times_s := _ms(times[name])) is not None},
    )


_Tick = tuple[float, float, float, float, float]  # seconds, users, requests, failures, mean in ms


def _ticks(table: Table, tally: Tally) -> Iterator[_Tick]:
    names = ("Timestamp", "User Count", "Total Request Count", "Total Failure Count", "Total Average Response Time")
    columns = [table.index(name) for name in names]
    name_at = table.index("Name")
    for row in table.rows():
        if name_at is not None and row[name_at].strip() != WHOLE:
            tally.dropped[_OF_NAME] += 1
            continue
        values = [number(row[at]) if at is not None else None for at in columns]
        if any(value is None for value in values):
            tally.dropped[_NO_NUMBER] += 1
            continue
        tally.kept += 1
        seconds, users, requests, failures, mean = (value or 0.0 for value in values)
        yield seconds, users, requests, failures, mean


def _stretches(ticks: Sequence[_Tick]) -> Iterator[tuple[_Tick, _Tick]]:
    """First and last tick of each stretch of one user count in which requests were answered."""
    start = 0
    for index in range(1, len(ticks) + 1):
        if index == len(ticks) or ticks[index][1] != ticks[start][1]:
            first, last = ticks[start], ticks[index - 1]
            if last[0] > first[0] and last[2] > first[2] and last[1] > 0:
                yield first, last
            start = index


def _stretch(first: _Tick, last: _Tick) -> Level:
    count = last[2] - first[2]
    seconds = last[0] - first[0]
    mean_ms = (last[2] * last[4] - first[2] * first[4]) / count
    return Level(
        name=f"{last[1]:g} users",
        loop="closed",
        concurrency=last[1],
        requests=int(count),
        errors=int(last[3] - first[3]),
        duration_s=seconds,
        throughput_rps=count / seconds,
        mean_s=mean_ms / 1e3,
    )


def _whole(ticks: Sequence[_Tick]) -> tuple[Level]:
    first, last = ticks[0], ticks[-1]
    seconds = last[0] - first[0]
    rate = last[2] / seconds if seconds > 0 else None
    return (
        Level(
            name="whole run",
            requests=int(last[2]),
            errors=int(last[3]),
            duration_s=seconds or None,
            throughput_rps=rate,
            mean_s=last[4] / 1e3 if last[2] else None,
        ),
    )


def _ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3
