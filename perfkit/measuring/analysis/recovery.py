"""How long after a spike is the service as quick as before it?

Medians of 20 requests in the order of the schedule are held against the median before the spike. Recovered is
whoever stays within a tenth of it from some block on, to the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import relative_ns
from perfkit.measuring.analysis.stability import MOST_SPREAD
from perfkit.measuring.analysis.stepping import StepSpan

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.rundata import RunData

BLOCK = 20  # judgement: fewer requests have no median that noise leaves alone


def recovery(run: RunData, spans: Sequence[StepSpan]) -> dict[str, Any]:
    """`recovery_s`: seconds after the spike's end, the longest of all rounds; {} for any other profile.

    None when the service did not recover, or too few requests tell.
    """
    if run.load.get("profile") != "spike":
        return {}
    before, _, after = spans
    times = [_of_round(run, *rounds) for rounds in zip(before.rounds, after.rounds, strict=True)]
    return {"recovery_s": None if None in times else max(time for time in times if time is not None)}


def _of_round(run: RunData, before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    _, calm = _latencies(run, before)
    since_s, latency_s = _latencies(run, after)
    calm = calm[len(calm) // 2 :]  # its first half may hold the warm-up
    if len(calm) < BLOCK or len(latency_s) < BLOCK:
        return None
    limit = float(np.median(calm)) * MOST_SPREAD
    starts = range(0, len(latency_s) - BLOCK + 1, BLOCK)
    slow = [float(np.median(latency_s[start : start + BLOCK])) > limit for start in starts]
    if slow[-1]:
        return None
    quick = len(list(itertools.takewhile(lambda is_slow: not is_slow, reversed(slow))))
    first = len(slow) - quick
    return 0.0 if first == 0 else float(since_s[starts[first]])


def _latencies(run: RunData, entry: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """When each request of a step was due, in seconds after its start, and its latency; without a reply infinite."""
    scheduled, received = (relative_ns(run.requests, name, entry["started_ns"]) for name in ("scheduled", "received"))
    numbers = run.requests["round"].to_numpy(dtype="float64", na_value=-1.0)
    inside = (numbers == entry["index"]) & (scheduled >= 0) & (scheduled < entry["ended_ns"] - entry["started_ns"])
    order = np.argsort(scheduled[inside], kind="stable")
    due, reply = scheduled[inside][order], received[inside][order]
    return due / NS_PER_S, np.where(np.isnan(reply), np.inf, (reply - due) / NS_PER_S)
