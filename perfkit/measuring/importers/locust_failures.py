"""Which errors did Locust count (`_failures.csv`)? How often each occurred; latencies are in its other files."""

from __future__ import annotations

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Metric, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "Locust failures CSV"
_COLUMNS = ["Method", "Name", "Error", "Occurrences"]
_NO_COUNT = "no count of occurrences"


def matches(head: str) -> bool:
    """By the names of the columns."""
    return headings(head)[: len(_COLUMNS)] == _COLUMNS


def read(source: Source) -> Imported:
    """Every error as a metric."""
    tally = Tally()
    metrics: list[Metric] = []
    for method, name, error, occurrences in (row[: len(_COLUMNS)] for row in Table(source, tally).rows()):
        count = number(occurrences)
        if count is None or count < 0:
            tally.dropped[_NO_COUNT] += 1
            continue
        tally.kept += 1
        labels = {"name": f"{method} {name}".strip(), "error": error}
        metrics.append(Metric(name="failures", labels=labels, kind="counter", value=count))
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="occurrences", clock="none", scope="none", basis="none"),
        metrics=tuple(metrics),
        notes=tuple(source.notes),
    )
