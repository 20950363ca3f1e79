"""What does `mpstat -o JSON` say? Each sample is the mean of the interval that ended at its time."""

from __future__ import annotations

from collections.abc import Iterator

from perfkit.clock import NS_PER_S
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.document import figure, items, load_object, part
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.sysstat import COLUMNS, sized

NAME = "mpstat JSON"
_NO_VALUE = "processor without a value that is known"


def matches(head: str) -> bool:
    """By the names that sysstat nests."""
    return head.lstrip().startswith("{") and '"sysstat"' in head[:200] and '"cpu-load"' in head


def read(source: Source) -> Imported:
    """Every processor of every sample; raises ConfigError on a cut document."""
    document = load_object(source, "an mpstat document")
    tally = Tally()
    series: list[SeriesRow] = []
    for host in items(part(document, "sysstat"), "hosts"):
        for at, sample in enumerate(items(host, "statistics")):
            for load in items(sample, "cpu-load"):
                found = list(_values(load, at))
                series += found
                tally.kept += bool(found)
                tally.dropped.update({} if found else {_NO_VALUE: 1})
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="per cent", clock="the place of a sample, a second apart", scope="window", basis="none"),
        series=tuple(series),
        notes=tuple(source.notes),
    )


def _values(load: object, at: int) -> Iterator[SeriesRow]:
    name = str(load.get("cpu", "")) if isinstance(load, dict) else ""
    source = "cpu" if name == "all" else f"cpu:{name}"
    for heading in load if isinstance(load, dict) else ():
        known, value = COLUMNS.get(f"%{heading}"), figure(load, heading)
        if known and value is not None:
            yield SeriesRow(at * NS_PER_S, source, known[0], known[1], sized(value, known[2]))
