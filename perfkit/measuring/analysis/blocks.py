"""How is an autocorrelated series cut into contiguous blocks without mixing rounds?

Requests near each other in time wait in the same queue, so they resemble each other. Means of long
contiguous blocks are nearly independent; a block never spans two rounds, between which time has passed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def blocks_per_round(sizes: Sequence[float], count: int) -> list[int]:
    """Shares `count` blocks among rounds in proportion to their sizes, at least one to each that is not empty."""
    total = float(sum(sizes))
    if total <= 0:
        return [0 for _ in sizes]
    shares = [count * size / total for size in sizes]
    given = [max(1, int(share)) if share > 0 else 0 for share in shares]
    by_rest = sorted(range(len(sizes)), key=lambda index: given[index] - shares[index])
    for index in by_rest[: max(0, count - sum(given))]:
        given[index] += 1
    return given


def block_edges(sizes: Sequence[int], count: int) -> NDArray[np.int64]:
    """Start index of each block of the concatenated rounds, and the total length as the last entry."""
    edges = [0]
    for size, blocks in zip(sizes, blocks_per_round(sizes, count), strict=True):
        blocks = min(blocks, size)
        start = edges[-1]
        edges += [start + size * (step + 1) // blocks for step in range(blocks)]
    return np.array(edges, dtype=np.int64)


def block_means(values: Floats | NDArray[np.bool_], edges: NDArray[np.int64]) -> Floats:
    """Mean of each block."""
    sums: Any = np.add.reduceat(values, edges[:-1], dtype=np.float64)
    return np.asarray(sums / np.diff(edges), dtype=np.float64)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with the ends of its interval; None where it cannot be given."""

    value: float | None
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, float | None]:
        """As `--json` prints it."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point; a missing end is unbounded."""
        low, high = _ends(self)
        other_low, other_high = _ends(other)
        return low <= other_high and other_low <= high


def _ends(interval: Interval) -> tuple[float, float]:
    low = -np.inf if interval.low is None else interval.low
    return low, np.inf if interval.high is None else interval.high


def mean_interval(means: Floats, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean of nearly independent block means."""
    from scipy.special import stdtrit

    if len(means) == 0:
        return Interval(value=None, low=None, high=None)
    value = float(np.mean(means))
    if len(means) == 1:
        return Interval(value=value, low=None, high=None)
    quantile = float(stdtrit(len(means) - 1, 0.5 + confidence / 2))
    half = quantile * float(np.std(means, ddof=1)) / len(means) ** 0.5
    return Interval(value=value, low=value - half, high=value + half)
