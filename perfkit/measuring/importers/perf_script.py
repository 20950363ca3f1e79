"""What do the samples of `perf script` say?

A heading a sample, its frames below it, leaf first; without `-g` the frame stands in the heading. Times
are seconds since the machine started. Samples of cpu-clock or cycles see running threads only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import StackCounter

NAME = "perf script"
_HEADING = re.compile(
    r"(?P<comm>\S.*?|)\s*(?<!\S)(?P<pid>-?\d+)(?:/\d+)?\s+(?:\[\d+\]\s+)?(?P<at>\d+\.\d+):\s+"
    r"(?:(?P<period>\d+)\s+)?(?P<event>[\w.,:/-]+?):\s*(?P<frame>[0-9a-f]+ .*)?"
)
_FRAME = re.compile(r"\s*[0-9a-f]+ (?P<symbol>.+?)(?:\+0x[0-9a-f]+)?(?: \((?P<place>[^()]*)\))?\s*")
STRAY = "line that belongs to no sample"
_UNITS = {"cpu-clock": "ns of CPU", "task-clock": "ns of CPU"}


def matches(head: str) -> bool:
    """By the heading of the first sample."""
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and _HEADING.fullmatch(lines[0].strip()) is not None


def read(source: Source) -> Imported:
    """One profile an event."""
    tally = Tally()
    counters: dict[str, StackCounter] = {}
    first, last = float("inf"), 0.0
    for heading, frames in _samples(source, tally):
        counter = counters.setdefault(heading["event"], StackCounter())
        comm = heading["comm"] or "(no name)"
        stack = [comm, *reversed(frames)]
        counter.add(stack, float(heading["period"] or 1), f"{comm} {heading['pid']}")
        first, last = min(first, float(heading["at"])), max(last, float(heading["at"]))
        tally.kept += 1
    notes = [*source.notes, "waiting threads have no samples: time at locks, in sleep or in I/O is not in it"]
    if tally.kept:
        notes.append(f"samples span {last - first:.3f} s")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="s", clock="seconds since the machine started", scope="none", basis="none"),
        profiles=tuple(one.profile(event, _UNITS.get(event, "events")) for event, one in counters.items()),
        notes=tuple(notes),
    )


def _samples(source: Source, tally: Tally) -> Iterator[tuple[dict[str, str], list[str]]]:
    heading: dict[str, str] | None = None
    frames: list[str] = []
    for line in source.lines():
        if line.startswith("#"):
            continue
        match = _HEADING.fullmatch(line.strip())
        if match:
            if heading:
                yield heading, frames
            heading, frames = match.groupdict(), _frames(match["frame"] or "")
        elif not line.strip():
            if heading:
                yield heading, frames
            heading, frames = None, []
        elif heading and (found := _frames(line)):
            frames += found
        else:
            tally.dropped[STRAY] += 1
    if heading:
        yield heading, frames


def _frames(line: str) -> list[str]:
    match = _FRAME.fullmatch(line)
    return [match["symbol"]] if match else []
