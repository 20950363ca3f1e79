"""How are latencies and batch sizes counted for /metrics? In fixed, roughly doubling buckets; one thread writes."""

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


SIZE_BOUNDS: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class BatchSizes:
    """How many batches of which size, counted by the requests that come out of them.

    For each answered request whoever writes adds one to `requests_at[size of its batch]`.
    """

    def __init__(self) -> None:
        self.requests_at = [0] * (SIZE_BOUNDS[-1] + 1)

    def buckets(self) -> list[float]:
        """Batches per bucket (not cumulative). One whose mates are not all answered yet counts as a part."""
        counts = [0.0] * len(SIZE_BOUNDS)
        for size, requests in enumerate(self.requests_at):
            if requests:
                counts[bisect_left(SIZE_BOUNDS, size)] += requests / size
        return counts

    @property
    def requests(self) -> int:
        """Answered requests: the sum of the sizes of all batches."""
        return sum(self.requests_at)
