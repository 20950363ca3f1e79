"""What do collapsed stacks say (py-spy's raw format, stackcollapse of perf)?

One stack a line, root first, its weight last. The weight is a count of samples, or an event's period
where perf wrote it: the file does not say which, nor the rate that would turn samples into time.
"""

from __future__ import annotations

import re

from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import StackCounter

NAME = "collapsed stacks"
_LINE = re.compile(r"(\S.*?)\s+(\d+(?:\.\d+)?)\s*")
_JUDGED = 50  # lines
_SHARE = 0.7  # of them that must be stacks
_PERIOD = 10_000  # a smallest weight above it is no count of samples
_MANY = 10_000_000  # samples of one stack: more than a day of them at 100 a second
NO_COUNT = "line without a count at its end"
WEIGHTS = Timing(unit="samples", clock="none", scope="none", basis="none")
PERIODS = Timing(unit="an event's period", clock="none", scope="none", basis="none")


def matches(head: str) -> bool:
    """By most of the first lines ending in a count, some with several frames."""
    lines = [line for line in head.splitlines()[:-1] or head.splitlines() if line.strip()][:_JUDGED]
    stacks = [line for line in lines if _LINE.fullmatch(line)]
    return len(stacks) >= _SHARE * len(lines) and any(
        ";" in line and "," not in line.partition(";")[0] for line in stacks
    )


def read(source: Source) -> Imported:
    """Every stack."""
    tally, counter = Tally(), StackCounter()
    for line in source.lines():
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            tally.dropped[NO_COUNT] += 1
            continue
        tally.kept += 1
        frames = match[1].split(";")
        counter.add(frames, float(match[2]), frames[0])
    notes = [*source.notes]
    is_period = counter.least > _PERIOD or counter.most > _MANY
    unit = "of the event's period" if is_period else "samples"
    if is_period:
        notes.append("weights look like an event's period (of cpu-clock: ns of CPU), not like counts of samples")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=PERIODS if is_period else WEIGHTS,
        profiles=(counter.profile("all threads", unit),) if tally.kept else (),
        notes=tuple(notes),
    )
