"""Where did the time of a Chrome trace go (PyTorch's profiler, py-spy's chrometrace)?

Complete events and pairs of B and E, in microseconds. Events of a thread nest, so that a sum over all
names counts time more than once: `own` leaves out what an event contains, `total` counts a name once
where it contains itself. The document is read in pieces and may be cut or not quite JSON.
"""

from __future__ import annotations

import math
import re
from typing import Any

from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.json_stream import JsonStream
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.spans import Spans

NAME = "Chrome trace"
_START = re.compile(r'"traceEvents"\s*:\s*\[')
_LIST = re.compile(r"^\s*\[")
_WHOLE_RUN = "Trace"  # the profiler's own span around everything
_NO_TIME = "event without a usable time"
_UNPAIRED = "B or E without its pair"
_OTHER = "event that is no span of time (ph {})"
_FULL = "event beyond the limit of {:,}"
EVENT_LIMIT = 12_000_000


def matches(head: str) -> bool:
    """By the fields of an event."""
    text = head.lstrip()
    if text.startswith("["):
        return '"ph"' in head and '"ts"' in head
    return text.startswith("{") and '"traceEvents"' in head


def read(source: Source) -> Imported:
    """One profile: all threads, the heaviest names, and the time at the top of each thread."""
    tally = Tally()
    stream = JsonStream(source)
    reader = _Reader(tally)
    if stream.seek(_LIST if source.head.lstrip().startswith("[") else _START):
        for event in stream.objects():
            reader.take(event)
    tally.dropped.update({_UNPAIRED: reader.open_count()} if reader.open_count() else {})
    notes = [*source.notes]
    if stream.broken:
        tally.dropped["event that is not valid JSON"] += len(stream.broken)
        notes.append(f"not valid JSON at character {stream.broken[0]:,}")
    if stream.mended:
        notes.append(f"{stream.mended} events are not valid JSON as written (raw quotes, inf); they were mended")
    if stream.is_cut:
        notes.append("the document is cut: whole events before the cut are kept")
    profile = reader.spans.profile()
    if not tally.kept:
        notes.append("there is no event with a duration: it says nothing of where time went")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="us", clock="the trace's own zero", scope="none", basis="none"),
        profiles=(profile,),
        notes=tuple(notes),
    )


class _Reader:
    """Turns events into spans."""

    def __init__(self, tally: Tally) -> None:
        self.spans = Spans()
        self._tally = tally
        self._open: dict[tuple[Any, Any], list[tuple[str, float]]] = {}

    def take(self, event: dict[str, Any]) -> None:
        """One event."""
        kind = event.get("ph")
        if kind == "M":
            self._name(event)
            self._tally.dropped[_OTHER.format("M: names of processes and threads")] += 1
        elif kind not in ("X", "B", "E") or event.get("cat") == _WHOLE_RUN:
            self._tally.dropped[_OTHER.format(kind if kind not in ("X",) else "X: the whole recording")] += 1
        elif len(self.spans) >= EVENT_LIMIT:
            self._tally.dropped[_FULL.format(EVENT_LIMIT)] += 1
        else:
            self._span(kind, event)

    def open_count(self) -> int:
        """How many B are still without an E."""
        return sum(map(len, self._open.values()))

    def _name(self, event: dict[str, Any]) -> None:
        args = event.get("args")
        if event.get("name") == "thread_name" and isinstance(args, dict):
            self.spans.name_thread(_thread(event), str(args.get("name", "")))

    def _span(self, kind: str, event: dict[str, Any]) -> None:
        try:
            at_us = float(event["ts"])
            length_us = float(event.get("dur", 0)) if kind == "X" else 0.0
        except (KeyError, TypeError, ValueError, OverflowError):
            self._tally.dropped[_NO_TIME] += 1
            return
        if not math.isfinite(at_us) or not 0 <= length_us < math.inf:
            self._tally.dropped[_NO_TIME] += 1
        elif kind == "X":
            self._keep(event, str(event.get("name", "")), at_us, length_us, 1)
        elif kind == "B":
            self._open.setdefault(_thread(event), []).append((str(event.get("name", "")), at_us))
        elif stack := self._open.get(_thread(event)):
            name, start_us = stack.pop()
            self._keep(event, name, start_us, max(0.0, at_us - start_us), 2)
        else:
            self._tally.dropped[_UNPAIRED] += 1

    def _keep(self, event: dict[str, Any], name: str, at_us: float, length_us: float, events: int) -> None:
        self.spans.add(name, _thread(event), at_us, length_us)
        self._tally.kept += events


def _thread(event: dict[str, Any]) -> tuple[str, str]:
    return str(event.get("pid", "")), str(event.get("tid", ""))
