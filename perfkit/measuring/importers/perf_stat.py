"""What did `perf stat` count, as text or with `-x,`?

Counts of one process over one interval. An event that the machine does not count is `<not supported>` or
`<not counted>`: absent, not zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfkit.measuring.importers.cells import SECONDS, decimal_mark, in_seconds, number
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
    """Once all numbers are known, since only together they tell which mark is the decimal one."""
    found = [one for line in source.lines() if (one := _counted(line, tally))]
    decimal = decimal_mark(text for text, _, _ in found)
    for text, unit, event in found:
        value = number(text, decimal)
        if value is None:
            tally.dropped[NOT_COUNTED] += 1
            continue
        tally.kept += 1
        yield _metric(event, unit, value)


def _counted(line: str, tally: Tally) -> tuple[str, str, str] | None:
    """Number, unit and event of a line; None where it has none."""
    if not line.strip() or line.startswith("#") or _TITLE in line:
        return None
    if elapsed := _ELAPSED.fullmatch(line):
        return elapsed[1], "s", elapsed[2].replace(" ", "_")
    if _ROW.fullmatch(line):
        text, unit, event = split_line(line, ",")[:3]
        return text, unit, event
    if match := _LINE.fullmatch(line):
        return match[1], match[2] or "", match[3]
    tally.dropped[_NO_EVENT] += 1
    return None


def _metric(event: str, unit: str, value: float) -> Metric:
    if unit in SECONDS:
        return Metric(name=f"{event}_seconds", labels={}, kind="counter", value=in_seconds(value, unit))
    return Metric(name=event, labels={"unit": unit} if unit else {}, kind="counter", value=value)
