"""How are latencies counted for /metrics? Buckets in a fixed, roughly doubling grid; one thread writes."""

from __future__ import annotations

from bisect import bisect_left

from perfkit.clock import NS_PER_S

BOUNDS_S: tuple[float, ...] = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
_BOUNDS_NS = [round(bound * NS_PER_S) for bound in BOUNDS_S]


class Histogram:
    """Counts per bucket (not cumulative) and the sum of what was observed."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_ns = 0

    def observe(self, value_ns: int) -> None:
        """Count one value."""
        self.counts[bisect_left(_BOUNDS_NS, value_ns)] += 1
        self.sum_ns += value_ns
