"""What does ghz say (gRPC, `-O json`)?

Nanoseconds. `details` has every call where it was not left out; latencies count from the actual send.
"""

from __future__ import annotations

from typing import Any

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.document import count, figure, items, load_object, part
from perfkit.measuring.importers.imported import Imported, Level, Loop, Tally, Timing
from perfkit.measuring.importers.instants import epoch_ns
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME = "ghz JSON"
_BROKEN = "call without a usable time stamp or latency"


def matches(head: str) -> bool:
    """By fields that only ghz writes together."""
    return (head.lstrip().startswith("{") and '"statusCodeDistribution"' in head) or (
        '"endReason"' in head and '"fastest"' in head and '"rps"' in head
    )


def read(source: Source) -> Imported:
    """Every call where the file has them, else one level; raises ConfigError on a cut document."""
    document = load_object(source, "a ghz result")
    tally, log = _calls(items(document, "details"))
    options, rate = part(document, "options"), figure(part(document, "options"), "rps") or None
    loop: Loop = "open" if rate else "closed"
    known: dict[str, Any] = {
        "loop": loop,
        "concurrency": figure(options, "concurrency"),
        "offered_rps": rate,
    }
    if not len(log):
        tally.kept = 1
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(
            unit="ns", clock="wall clock with zone", scope="request" if len(log) else "cumulative", basis="sent"
        ),
        requests=log.requests(),
        levels=log.levels(**known)[:1] if len(log) else (Level(name="run", **known, **_summary(document)),),
        notes=tuple(source.notes),
    )


def _calls(calls: list[Any]) -> tuple[Tally, RequestLog]:
    tally, log = Tally(), RequestLog()
    for call in calls:
        try:
            is_error = bool(call.get("error")) or str(call.get("status", "OK")).upper() != "OK"
            log.add(epoch_ns(str(call["timestamp"])), int(str(call["latency"])), is_error, "")
            tally.kept += 1
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            tally.dropped[_BROKEN] += 1
    return tally, log


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    shares = [
        (figure(one, "percentage", 100), figure(one, "latency", NS_PER_S))
        for one in items(document, "latencyDistribution")
    ]
    errors = part(document, "errorDistribution")
    return {
        "requests": count(document, "count"),
        "errors": sum(count(errors, name) or 0 for name in errors),
        "throughput_rps": figure(document, "rps"),
        "duration_s": figure(document, "total", NS_PER_S),
        "mean_s": figure(document, "average", NS_PER_S),
        "min_s": figure(document, "fastest", NS_PER_S),
        "max_s": figure(document, "slowest", NS_PER_S),
        "percentiles_s": {p: value for p, value in shares if p is not None and value is not None},
    }
