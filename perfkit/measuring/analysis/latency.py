"""How slow are the slow requests, how sure is that, and how long must one measure to say so?

Batch means: the indicator "slower than the quantile" is averaged over contiguous blocks; how
much their variance exceeds the binomial one is the variance inflation (VIF); n / VIF requests count as
independent, and the interval is Student's in probability, read off as two other quantiles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfkit.measuring.analysis.blocks import Floats, Interval, block_edges, block_means
from perfkit.measuring.analysis.floors import floor_count

BLOCKS = 20  # own trials on simulated M/M/1: coverage .86 to .96 in runs of 280 relaxation times or more
_LEAST_BLOCK = 2  # requests a block must hold to have a mean worth the name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A latency quantile in seconds with its 95 % interval.

    `value` is None below the floor of effective requests, and `needs_s` then says how many seconds of
    measuring at this rate would reach it. `high` is None when the interval runs past the slowest request.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    n_eff: float
    needs_s: float | None

    def to_json(self) -> dict[str, float | None]:
        """As `--json` prints it."""
        return dataclasses.asdict(self)

    @property
    def interval(self) -> Interval:
        """Value and ends without the counts."""
        return Interval(value=self.value, low=self.low, high=self.high)


NO_QUANTILE = Quantile(value=None, low=None, high=None, n=0, n_eff=0.0, needs_s=None)


def variance_inflation(slower: Floats | NDArray[np.bool_], sizes: Sequence[int], p: float) -> tuple[float, int]:
    """How many requests count as one, at least 1, and the number of blocks that it was judged on."""
    edges = block_edges(sizes, max(2, min(BLOCKS, len(slower) // _LEAST_BLOCK)))
    blocks = len(edges) - 1
    if blocks < 2:
        return float(len(slower)), blocks
    spread = float(np.var(block_means(slower, edges), ddof=1))
    return max(1.0, spread * (len(slower) / blocks) / (p * (1 - p))), blocks


def quantile(latency_s: Floats, sizes: Sequence[int], p: float, seconds: float, confidence: float = 0.95) -> Quantile:
    """Quantile `p` of latencies in the order of their schedule, round after round.

    `sizes` counts the requests of each round, `seconds` the time in which they were scheduled. A request
    that never got its reply counts as infinitely slow.
    """
    from scipy.special import stdtrit

    n = len(latency_s)
    if n == 0:
        return NO_QUANTILE
    ordered = np.sort(latency_s)
    value = at_probability(ordered, p)
    inflation, blocks = _inflation_at(value, latency_s, sizes, p)
    n_eff = n / inflation
    half = float(stdtrit(max(1, blocks - 1), 0.5 + confidence / 2)) * (p * (1 - p) / n_eff) ** 0.5
    floor = floor_count(p)
    return Quantile(
        value=_finite(value) if n_eff >= floor else None,
        low=_finite(at_probability(ordered, p - half)) if p > half else None,
        high=_finite(at_probability(ordered, p + half)) if p + half < 1 else None,
        n=n,
        n_eff=n_eff,
        needs_s=None if n_eff >= floor else floor * inflation * seconds / n,
    )


def _inflation_at(value: float, latency_s: Floats, sizes: Sequence[int], p: float) -> tuple[float, int]:
    """As `variance_inflation`, of the requests above a value; of those at it too where that says more.

    Replies to one batch may come in one instant. Where they are the slowest of all, nothing lies above them, and
    a crowd that is one event would pass for independent requests. Judged by their own share: ties widen it.
    """
    above, blocks = variance_inflation(latency_s > value, sizes, p)
    at_least = latency_s >= value
    slower_ratio = float(at_least.mean())
    if slower_ratio == 1 or np.count_nonzero(latency_s == value) < 2:
        return above, blocks
    return max(above, variance_inflation(at_least, sizes, 1 - slower_ratio)[0]), blocks


def at_probability(ordered: Floats, p: float) -> float:
    """The smallest observed value that at least a share `p` does not exceed."""
    rank = int(np.ceil(p * len(ordered) - 1e-9))  # 0.95 * 20 is a hair above 19
    return float(ordered[min(max(rank, 1), len(ordered)) - 1])


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
