"""From which latency on is a request slow? An absolute limit, or a multiple of what is usual here.

Usual is the median of the most recent latencies, found again every so many requests: exact enough to
multiply, and cheap. Pure; for one thread.
"""

from __future__ import annotations

from collections import deque

_KEPT = 512  # latencies: a few seconds of a busy service, so that usual follows the load
_RENEWED_EVERY = 64  # requests; also the fewest of which a median is taken


class SlowThreshold:
    """Which latencies are slow, in nanoseconds. Both limits may be set: the lower one counts."""

    def __init__(self, limit_ns: int | None, median_ratio: float | None) -> None:
        self._limit_ns = limit_ns
        self._ratio = median_ratio
        self._recent: deque[int] = deque(maxlen=_KEPT)
        self._until_renewal = _RENEWED_EVERY
        self._present_ns = limit_ns or 0

    @property
    def present_ns(self) -> int:
        """What counts as slow now; 0 while nothing does."""
        return self._present_ns

    def is_slow(self, latency_ns: int) -> bool:
        """Judge one latency by those before it, then remember it."""
        slow = 0 < self._present_ns <= latency_ns
        if self._ratio is not None:
            self._remember(latency_ns, self._ratio)
        return slow

    def _remember(self, latency_ns: int, ratio: float) -> None:
        self._recent.append(latency_ns)
        self._until_renewal -= 1
        if self._until_renewal == 0:
            self._until_renewal = _RENEWED_EVERY
            multiple_ns = round(ratio * sorted(self._recent)[len(self._recent) // 2])
            self._present_ns = multiple_ns if self._limit_ns is None else min(multiple_ns, self._limit_ns)
