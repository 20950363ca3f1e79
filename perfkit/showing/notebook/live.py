"""What does a run look like while it lasts, and afterwards? Readings of the last second, a quarter second apart.

The same function reads the growing sample file and the archived run, so the last picture of a run that was
watched is a picture of what was archived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.latency import at_probability
from perfkit.measuring.load.samples import read_samples
from perfkit.records import EndState

if TYPE_CHECKING:
    from perfkit.measuring.experiment import Run

STEP_NS = NS_PER_S // 4
WINDOW_NS = NS_PER_S
_UNKNOWN_NS = 1 << 62
SETTLED_NS = NS_PER_S // 2
"""A reply is in the sample file at most this long after it came: the generator writes four times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """Good replies in the order in which they came. `started_ns` is when load began; 0 while nothing is known."""

    started_ns: int
    received_ns: np.ndarray
    latency_ns: np.ndarray

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.received_ns)


NO_REPLIES = Replies(started_ns=0, received_ns=np.empty(0, np.int64), latency_ns=np.empty(0, np.int64))


class SampleTail:
    """Reads what growing sample files have got since the last look. One thread."""

    def __init__(self) -> None:
        self._rows: dict[Path, int] = {}
        self.replies = NO_REPLIES

    def read(self, paths: Sequence[Path]) -> Replies:
        """All replies so far; a file that is not there yet holds none."""
        for path in paths:
            if path.exists():
                samples = read_samples(path, self._rows.get(path, 0))
                self._rows[path] = self._rows.get(path, 0) + len(samples["request_id"])
                self.replies = _extended(self.replies, samples)
        if len(paths) > 1:  # each file is in order, the files among each other are not
            order = np.argsort(self.replies.received_ns, kind="stable")
            received_ns, latency_ns = self.replies.received_ns[order], self.replies.latency_ns[order]
            self.replies = replace(self.replies, received_ns=received_ns, latency_ns=latency_ns)
        return self.replies


def archived_replies(run: Run) -> Replies:
    """The good replies of an archived run; raises ArchiveError."""
    table = run.table("requests")
    table = table[table["received_ns"].notna() & (table["end_state"] == EndState.OK.label)]
    received, scheduled = (table[name].to_numpy("int64") for name in ("received_ns", "scheduled_ns"))
    order = np.argsort(received, kind="stable")
    started_ns = int(run.stored.manifest.rounds[0]["started_ns"])
    return Replies(started_ns=started_ns, received_ns=received[order], latency_ns=(received - scheduled)[order])


def _extended(before: Replies, samples: Mapping[str, np.ndarray]) -> Replies:
    good = samples["outcome"] == EndState.OK
    if not good.any():
        return before
    received, scheduled = samples["received_ns"][good], samples["scheduled_ns"][good]
    return Replies(
        started_ns=min(before.started_ns or _UNKNOWN_NS, int(scheduled.min())),
        received_ns=np.concatenate([before.received_ns, received]),
        latency_ns=np.concatenate([before.latency_ns, received - scheduled]),
    )


def live_readings(replies: Replies, gauges: Sequence[Mapping[str, Any]], until_ns: int) -> list[dict[str, Any]]:
    """Rows for the live plot, up to an instant: throughput, P50 and P99 of the last second, queue and model threads.

    `gauges` holds readings of the server (`time_ns`, `queued`, `threads`). Without a reply the quantiles are absent.
    """
    if not replies.started_ns:
        return []
    instants = range(replies.started_ns + STEP_NS, until_ns + 1, STEP_NS)
    return [{"time_ns": replies.started_ns}, *(_reading(replies, gauges, instant) for instant in instants)]


def _reading(replies: Replies, gauges: Sequence[Mapping[str, Any]], instant_ns: int) -> dict[str, Any]:
    from_ns = max(replies.started_ns, instant_ns - WINDOW_NS)
    first, last = np.searchsorted(replies.received_ns, [from_ns, instant_ns], side="right")
    ordered = np.sort(replies.latency_ns[first:last]) / NS_PER_S
    latest: Mapping[str, Any] = next(
        (gauge for gauge in reversed(gauges) if from_ns < gauge["time_ns"] <= instant_ns), {}
    )
    return {
        "time_ns": instant_ns,
        "throughput_rps": len(ordered) / ((instant_ns - from_ns) / NS_PER_S),
        "p50_s": at_probability(ordered, 0.50) if len(ordered) else None,
        "p99_s": at_probability(ordered, 0.99) if len(ordered) else None,
        "queued": latest.get("queued"),
        "threads": latest.get("threads"),  # runs of before it was recorded have none
    }
