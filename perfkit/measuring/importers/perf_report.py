"""What does `perf report --stdio` say? Shares of one event by command, object and symbol, each to two decimals."""

from __future__ import annotations

import re

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.imported import Imported, Profile, Tally, Timing, Weight
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import TOP

NAME = "perf report"
_EVENT = re.compile(r"# Samples: (\S+)\s+of events? '([^']+)'")
_TOTAL = re.compile(r"# Event count \(approx\.\): (\d{1,18})")
_ROW = re.compile(r"\s*(\d{1,3}\.\d\d)%\s+(?:(\d{1,3}\.\d\d)%\s+)?(.*?\[[.kugHa]\]\s+)?(\S.*?)(?:\s{2,}.*)?")
_BRANCH = re.compile(r"[\s|`-]")  # lines of a call graph begin so
_NO_SHARE = "line without a share"
_CALLERS = "line of a call graph"


def matches(head: str) -> bool:
    """By its first comment lines."""
    return bool(_EVENT.search(head)) and "# Overhead" in head.replace("Children      Self", "Overhead")


def read(source: Source) -> Imported:
    """One profile of the last event that the file names."""
    tally, weights, event, total, samples = Tally(), [], "event", 100.0, 0.0
    for line in source.lines():
        if named := _EVENT.search(line):
            event, samples = named[2], number(named[1].replace("K", "k")) or 0.0
        if counted := _TOTAL.search(line):
            total = float(counted[1])
        if not line.strip() or line.startswith("#"):
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            tally.dropped[_CALLERS if _BRANCH.match(line) else _NO_SHARE] += 1
            continue
        tally.kept += 1
        share = float(match[1]) / 100
        own = float(match[2]) / 100 if match[2] else share
        weights.append(Weight(name=match[4], own=own * total, total=share * total, count=0))
    unit = "ns of CPU" if event in ("cpu-clock", "task-clock") else "events"
    top = tuple(sorted(weights, key=lambda one: -one.own)[:TOP])
    profile = Profile(name=event, unit=unit, total=total, samples=int(samples), top=top)
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="per cent of the event count", clock="none", scope="none", basis="none"),
        profiles=(profile,) if weights else (),
        notes=(*source.notes, "shares are rounded to 0.01 %; a waiting thread has no samples"),
    )
