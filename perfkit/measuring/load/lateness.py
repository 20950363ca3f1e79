"""How late was the generator itself?

Lateness runs from the instant at which a request was due to the instant at which the generator took
it up. It is the generator's own delay: waiting for a connection comes after it and is not part of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import accumulate

from perfkit.clock import NS_PER_S

_BUCKET_NS = 1_000
_BUCKETS = 1 << 20  # one second; more is counted there, and the maximum is exact


class Lateness:
    """Counts delays to the microsecond in constant memory. One thread."""

    def __init__(self) -> None:
        self._counts = array("I", bytes(4 * _BUCKETS))
        self._max_ns = 0

    def add(self, late_ns: int) -> None:
        """Count one delay, in nanoseconds."""
        if late_ns > self._max_ns:
            self._max_ns = late_ns
        try:
            self._counts[late_ns // _BUCKET_NS] += 1
        except IndexError:
            self._counts[_BUCKETS - 1] += 1

    def quantile_s(self, ratio: float) -> float | None:
        """The delay that a share of the requests did not exceed; None without requests."""
        total = sum(self._counts)
        if total == 0:
            return None
        wanted = ratio * total
        bucket = next(index for index, seen in enumerate(accumulate(self._counts)) if seen >= wanted and seen)
        return min((bucket + 1) * _BUCKET_NS, self._max_ns) / NS_PER_S

    def counts(self) -> dict[str, int]:
        """How many delays fell into each microsecond, those into which one did: what several processes merge by."""
        return {str(index): seen for index, seen in enumerate(self._counts) if seen}

    def include(self, counts: Mapping[str, int], max_s: float | None) -> None:
        """Count another process's delays in as well."""
        for index, seen in counts.items():
            self._counts[int(index)] += seen
        self._max_ns = max(self._max_ns, round((max_s or 0.0) * NS_PER_S))

    @property
    def max_s(self) -> float | None:
        """The longest delay in seconds; None without requests."""
        return self._max_ns / NS_PER_S if any(self._counts) else None
