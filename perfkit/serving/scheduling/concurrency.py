"""How many requests may be in hand at once? A fixed number, or one that follows the latency.

The adaptive rule is additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP):
while answers come within the target the limit grows by one for every limit's worth of them, and a
late or expired one shrinks it by a tenth. One slow spell makes many requests late, so the limit shrinks at
most once per target's length. It only grows while it is in use: an idle service proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from perfkit.clock import NS_PER_S
from perfkit.records import EndState
from perfkit.serving.scheduling.decisions import Rejected

_BACKOFF_RATIO = 0.9  # what a decrease leaves of the limit
_WEIGHT = 0.1  # of the newest latency in the moving mean
_LEAST_S, _MOST_S = 0.1, 60.0  # of Retry-After


class Ended(NamedTuple):
    """What became of items that were in hand: how many, after how long, and how they ended."""

    size: int
    latency_ns: int
    state: EndState = EndState.OK


class FixedLimit:
    """At most `limit` items in hand. Not thread-safe."""

    __slots__ = ("_latency_ns", "in_hand", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_hand = 0
        self._latency_ns = 0.0  # moving mean

    def enter(self, count: int) -> Rejected | None:
        """Take `count` items in hand, all or none; None means taken. More than the limit pass when nothing is in hand.

        Retry-After is one mean latency: by then what is in hand now has gone.
        """
        if self.in_hand and self.in_hand + count > self.limit:
            mean_s = self._latency_ns / NS_PER_S
            return Rejected(reason="concurrency_limit", retry_after_s=min(_MOST_S, max(_LEAST_S, mean_s)))
        self.in_hand += count
        return None

    def give_back(self, count: int) -> None:
        """Items that had entered were turned away by somebody else."""
        self.in_hand -= count

    def leave(self, ended: Ended, now_ns: int) -> None:
        """Items have ended, well or not."""
        self.in_hand -= ended.size
        newest = ended.latency_ns
        self._latency_ns += _WEIGHT * (newest - self._latency_ns) if self._latency_ns else newest


class AdaptiveLimit(FixedLimit):
    """A limit between 1 and `ceiling` that holds latency at the target. It begins at the ceiling."""

    __slots__ = ("_ceiling", "_credit", "_shrunk_ns", "_target_ns")

    def __init__(self, ceiling: int, target_ns: int) -> None:
        super().__init__(ceiling)
        self._ceiling = ceiling
        self._target_ns = target_ns
        self._credit = 0  # answers in time since the limit last moved
        self._shrunk_ns = -target_ns

    def leave(self, ended: Ended, now_ns: int) -> None:
        """As in `FixedLimit`, and the limit moves."""
        is_in_use = 2 * self.in_hand >= self.limit
        super().leave(ended, now_ns)
        if ended.state is EndState.EXPIRED or ended.latency_ns > self._target_ns:
            self._shrink(now_ns)
        elif is_in_use and ended.state is EndState.OK:  # what failed or was refused at once proves nothing
            self._credit += ended.size
            if self._credit >= self.limit:
                self._credit = 0
                self.limit = min(self._ceiling, self.limit + 1)

    def _shrink(self, now_ns: int) -> None:
        if now_ns - self._shrunk_ns < self._target_ns:
            return
        self._shrunk_ns = now_ns
        self._credit = 0
        self.limit = max(1, int(self.limit * _BACKOFF_RATIO))
