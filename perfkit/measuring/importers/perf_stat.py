"""What did `perf stat` count, as text or with `-x,`?

Counts of one process over one interval. An event that the machine does not count is `<not supported>` or
`<not counted>`: absent, not zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfkit.measuring.importers.cells import SECONDS, number
from perfkit.measuring.importers.delimited import split_line
from perfkit.measuring.importers.imported import Imported, Metric, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "perf stat"
_TITLE = "Performance counter stats for"
_EVENT = r"[a-zA-Z][\w.:/-]*"
_LINE = re.compile(rf"\s*(<not \w+>|[\d.,]+)\s+(?:(msec|Joules|[MKG]?Bytes)\s+)?({_EVENT})(?:\s+#.*|\s*)")
_ROW = re.compile(rf"(<not \w+>|[\d.]+),(\w*),({_EVENT}),\d+,[\d.]+,.*")
_ELAPSED = re.compile(r"\s*([\d.,]+) seconds (time elapsed|user|sys)\s*")
NOT_COUNTED = "event that this machine does not count"
_NO_EVENT = "line without an event"


def matches(head: str) -> bool:
    """By its title, or rows of a number, a unit and an event."""
    if _TITLE in head:
        return True
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    return len(lines) > 1 and all(_ROW.fullmatch(line) for line in lines[:-1])


def read(source: Source) -> Imported:
    """Every counted event as a metric, times in seconds."""
    tally = Tally()
    metrics = tuple(_metrics(source, tally))
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="as printed", clock="none", scope="none", basis="none"),
        metrics=metrics,
        notes=tuple(source.notes),
    )


def _metrics(source: Source, tally: Tally) -> Iterator[Metric]:
    for line in source.lines():
        if not line.strip() or line.startswith("#") or _TITLE in line:
            continue
        if elapsed := _ELAPSED.fullmatch(line):
            tally.kept += 1
            yield Metric(
                name=f"{elapsed[2].replace(' ', '_')}_seconds", labels={}, kind="time", value=_plain(elapsed[1])
            )
            continue
        is_row = _ROW.fullmatch(line)
        found = split_line(line, ",")[:3] if is_row else match.groups() if (match := _LINE.fullmatch(line)) else None
        value = None if found is None else number(str(found[0]))
        if found is None or value is None:
            tally.dropped[_NO_EVENT if found is None else NOT_COUNTED] += 1
            continue
        tally.kept += 1
        yield _metric(str(found[2]), found[1] or "", _plain(str(found[0])))


def _metric(event: str, unit: str, value: float) -> Metric:
    if unit in SECONDS:
        return Metric(name=f"{event}_seconds", labels={}, kind="counter", value=value * SECONDS[unit])
    return Metric(name=event, labels={"unit": unit} if unit else {}, kind="counter", value=value)


def _plain(text: str) -> float:
    """perf groups thousands by commas where the locale does."""
    return number(text) or 0.0
