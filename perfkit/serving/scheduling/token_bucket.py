"""May this request come in at the rate that was agreed? A token bucket, as a pure state machine.

The bucket holds `burst` tokens and gains `rate_rps` of them a second. What it holds is kept as one
instant, the one at which it will be full again (the form in which ATM's generic cell rate algorithm,
ITU-T I.371, keeps it), so it is exact and nothing has to tick.
"""

from __future__ import annotations

import math

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.decisions import Rejected


class TokenBucket:
    """Lets `rate_rps` items a second in, and `burst` at once after a pause. Not thread-safe."""

    __slots__ = ("_burst", "_full_at_ns", "_token_ns")

    def __init__(self, rate_rps: float, burst: int) -> None:
        self._burst = burst
        self._token_ns = math.ceil(NS_PER_S / rate_rps)  # rounded up: never more than the rate
        self._full_at_ns = 0

    def take(self, count: int, now_ns: int) -> Rejected | None:
        """Take a token for each of `count` items, all or none; None means taken.

        More items than the bucket ever holds pass when it is full, and those that follow pay the debt.
        """
        full_at_ns = max(self._full_at_ns, now_ns)
        may_lack_ns = max(0, self._burst - count) * self._token_ns
        too_early_ns = full_at_ns - now_ns - may_lack_ns
        if too_early_ns > 0:
            return Rejected(reason="rate_limited", retry_after_s=too_early_ns / NS_PER_S)
        self._full_at_ns = full_at_ns + count * self._token_ns
        return None

    def give_back(self, count: int) -> None:
        """Items that had their tokens were turned away by somebody else."""
        self._full_at_ns -= count * self._token_ns
