"""What does a table of single times say, one row a call, as people's own scripts write it?

The unit must stand in the heading or in the cells: nothing else could tell it. Rows keep their order, but without
a clock there is no rate.
"""

from __future__ import annotations

import itertools
import re

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.importers.cells import decimal_mark, duration_s, number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.plain_table import unit_of
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "table of single times"
_TIME = re.compile(r"\b(latency|duration|elapsed|response[ _]?time|time[ _]?taken|inference[ _]?time|time|耗时|延迟)\b")
_LABELS = ("label", "name", "endpoint", "url", "operation", "model", "tag")
_NO_TIME = "no time in its cell"
_LEAST_AXIS = 10  # rows that only grow are instants


def matches(head: str) -> bool:
    """By one column of times beside others."""
    return len(headings(head)) > 1 and _column(headings(head)) is not None


def read(source: Source) -> Imported:
    """Every row as a call; raises ConfigError where nothing tells the unit, or the times are instants."""
    tally, log = Tally(), RequestLog(resolution_ns=NS_PER_S)
    table = Table(source, tally)
    at = _column(table.columns)
    assert at is not None
    rows = list(table.rows())
    decimal = decimal_mark(row[at] for row in rows)
    unit = unit_of(table.columns[at])
    _refuse_without_unit(source, table.columns[at], [row[at] for row in rows], unit)
    label = next((place for name in _LABELS if (place := table.index(name)) is not None), None)
    for place, row in enumerate(rows):
        seconds = duration_s(row[at], unit, decimal)
        if seconds is None or not 0 <= seconds < 1e6:
            tally.dropped[_NO_TIME] += 1
            continue
        log.add(place, round(seconds * NS_PER_S), False, "" if label is None else row[label].strip())
    tally.kept = len(log)
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit=unit or "as in the cells", clock="none", scope="request", basis="unknown"),
        levels=log.levels(errors=None) if len(log) else (),
        requests=log.requests(),
        notes=(*source.notes, "rows are taken in the order of the file; errors and rates are not in it"),
    )


def _column(columns: list[str]) -> int | None:
    """The last column of times: what comes before it describes the call."""
    return next((at for at in reversed(range(len(columns))) if _TIME.search(columns[at].lower())), None)


def _refuse_without_unit(source: Source, heading: str, cells: list[str], unit: str | None) -> None:
    values = [value for cell in cells if (value := number(cell)) is not None]
    grows = all(later >= earlier for earlier, later in itertools.pairwise(values))
    if len(values) >= _LEAST_AXIS and grows and values[0] < values[-1]:
        raise ConfigError(f"{source.path}: the column “{heading}” only grows, so it holds instants and no latencies")
    if unit is None and values and all(duration_s(cell) is None for cell in cells):
        raise ConfigError(
            f"{source.path}: {len(values)} single times in the column “{heading}”, and nothing tells their unit; "
            f"write it into the heading, as in `{heading} (s)`"
        )
