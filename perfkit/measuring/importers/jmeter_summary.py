"""What does JMeter's summariser say on the console?

`summary =` is the whole run so far, `summary +` the part since the line before. Times are milliseconds, rates
count from the test's start, the JVM's start included.
"""

from __future__ import annotations

import re

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "JMeter console summary"
_NUMBER = r"(\d{1,15})"
_LINE = re.compile(
    rf"summary ([+=])\s+{_NUMBER} in\s+(\S+?)(s?)\s*=\s*([\d.]+)/s "
    rf"Avg:\s*{_NUMBER} Min:\s*{_NUMBER} Max:\s*{_NUMBER} Err:\s*{_NUMBER} .*"
)
_CLOCK = re.compile(r"(\d{1,6}):(\d\d):(\d\d)")
_ACTIVE = re.compile(r"Active: (\d{1,9})")
_PART = "part of the run (summary = has the whole)"


def matches(head: str) -> bool:
    """By a line of the summariser."""
    return any(_LINE.search(line) for line in head.splitlines())


def read(source: Source) -> Imported:
    """The last line of the whole run as one level; the parts only where there is no such line."""
    tally, most = Tally(), 0
    parts: list[re.Match[str]] = []
    whole: re.Match[str] | None = None
    for line in source.lines():
        if active := _ACTIVE.search(line):
            most = max(most, int(active[1]))
        match = _LINE.search(line)
        if match and match[1] == "=":
            whole = match
        elif match:
            parts.append(match)
    chosen = parts if whole is None else [whole]
    tally.kept = len(chosen)
    if whole is not None and parts:
        tally.dropped[_PART] += len(parts)
    names = [f"part {at}" for at in range(1, len(parts) + 1)] if whole is None else ["run"]
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="none", scope="cumulative", basis="sent"),
        levels=tuple(_level(name, match, most) for name, match in zip(names, chosen, strict=True)),
        notes=(*source.notes, "whole milliseconds; percentiles are not in this file; the rate counts the JVM's start"),
    )


def _level(name: str, match: re.Match[str], most: int) -> Level:
    mean, least, largest, errors = (int(text) for text in match.groups()[5:])
    return Level(
        name=name,
        loop="closed",
        concurrency=most or None,
        requests=int(match[2]),
        errors=errors,
        duration_s=_seconds(match[3], bool(match[4])),
        throughput_rps=number(match[5]),
        mean_s=mean / 1e3,
        min_s=least / 1e3,
        max_s=largest / 1e3,
    )


def _seconds(text: str, is_seconds: bool) -> float | None:
    """`2.1` with an s behind it, or `00:00:02`."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = map(int, clock.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    return number(text) if is_seconds else None
