"""What does ghz say (gRPC, `-O json`)?

Nanoseconds. `details` has every call where it was not left out; latencies count from the actual send.
"""

from __future__ import annotations

from typing import Any

import orjson

from perfkit.errors import ConfigError
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
    try:
        document = orjson.loads(source.whole())
        options = document.get("options") or {}
        calls = document.get("details") or []
        tally, log = _calls(calls)
        summary = _summary(document)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{source.path}: a ghz result that is cut or broken ({error}); write it again") from None
    loop: Loop = "open" if options.get("rps") else "closed"
    known: dict[str, Any] = {
        "loop": loop,
        "concurrency": options.get("concurrency"),
        "offered_rps": options.get("rps") or None,
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
        levels=log.levels(**known)[:1] if len(log) else (Level(name="run", **known, **summary),),
        notes=tuple(source.notes),
    )


def _calls(calls: list[dict[str, object]]) -> tuple[Tally, RequestLog]:
    tally, log = Tally(), RequestLog()
    for call in calls:
        try:
            is_error = bool(call.get("error")) or str(call.get("status", "OK")).upper() != "OK"
            log.add(epoch_ns(str(call["timestamp"])), int(str(call["latency"])), is_error, "")
            tally.kept += 1
        except (KeyError, ValueError, AttributeError, OverflowError):
            tally.dropped[_BROKEN] += 1
    return tally, log


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    shares = document.get("latencyDistribution") or []
    errors = document.get("errorDistribution") or {}
    return {
        "requests": document.get("count"),
        "errors": sum(errors.values()),
        "throughput_rps": document.get("rps"),
        "duration_s": _ns(document.get("total")),
        "mean_s": _ns(document.get("average")),
        "min_s": _ns(document.get("fastest")),
        "max_s": _ns(document.get("slowest")),
        "percentiles_s": {share["percentage"] / 100: share["latency"] / 1e9 for share in shares},
    }


def _ns(value: object) -> float | None:
    return value / 1e9 if isinstance(value, (int, float)) else None
