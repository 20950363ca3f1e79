"""What does perf_analyzer's export of single requests say (`--profile-export-file`)?

Nanoseconds since the epoch. A request with several responses (streaming) lasts until its last one. All
windows are in it, those before the measurement was stable too.
"""

from __future__ import annotations

import re
from typing import Any

from perfkit.measuring.importers.document import as_figure
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.json_stream import JsonStream
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "perf_analyzer export JSON"
_EXPERIMENT = re.compile(r'"experiment"\s*:\s*(?=\{)')
_REQUESTS = re.compile(r'"requests"\s*:\s*\[')
_BROKEN = "request without a usable time stamp"


def matches(head: str) -> bool:
    """By the nesting that only this export has."""
    return bool(re.match(r'\s*\{\s*"experiments"\s*:\s*\[', head)) and '"experiment"' in head


def read(source: Source) -> Imported:
    """One level an experiment, from its single requests."""
    tally = Tally()
    levels: list[Level] = []
    stream = JsonStream(source)
    try:
        while stream.seek(_EXPERIMENT):
            experiment = stream.value()
            levels += _levels(stream, experiment, tally)
    except ValueError:
        stream.is_cut = True
    notes = [*source.notes, "all windows are in it, those before the measurement became stable too"]
    if stream.is_cut:
        notes.append("the document is cut: whole requests before the cut are kept")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ns", clock="epoch, at the send", scope="request", basis="sent"),
        levels=tuple(levels),
        is_range=len(levels) > 1,
        notes=tuple(notes),
    )


def _levels(stream: JsonStream, experiment: dict[str, Any], tally: Tally) -> tuple[Level, ...]:
    mode, value = str(experiment.get("mode")), as_figure(experiment.get("value"))
    log = RequestLog()
    name = f"{mode.replace('_', ' ')} {'unknown' if value is None else format(value, 'g')}"
    if not stream.seek(_REQUESTS):
        raise ValueError("no requests")
    for request in stream.objects():
        _take(request, log, name, tally)
    if not len(log):
        return ()
    load = {"concurrency": value, "loop": "closed"} if mode == "concurrency" else {"offered_rps": value, "loop": "open"}
    (level,) = log.levels(name=name, **load)
    return (level,)


def _take(request: dict[str, Any], log: RequestLog, name: str, tally: Tally) -> None:
    try:
        start, ends = int(request["timestamp"]), request.get("response_timestamps") or []
        if ends:
            log.add(start, int(ends[-1]) - start, False, name)
        else:
            log.add_unanswered(name)
        tally.kept += 1
    except (KeyError, TypeError, ValueError, OverflowError):
        tally.dropped[_BROKEN] += 1
