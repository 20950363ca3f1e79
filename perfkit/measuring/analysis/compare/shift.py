"""By how much do two sets of runs differ, and how sure is that? The unit is a run, never a request.

All figures are ratios B / A, worked out on logarithms, so that +5 % and its way back weigh the same.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from numpy.typing import NDArray

from perfkit.measuring.analysis.blocks import Floats

RESAMPLES = 1_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """B against A as a change: 0.05 = B is 5 % above A.

    `low` and `high` are the ends of the interval; None where so few runs allow none at that level.
    `error_ratio` is one standard deviation of the estimate, `p_value` Wilcoxon's.
    """

    value_ratio: float
    low_ratio: float | None
    high_ratio: float | None
    p_value: float
    error_ratio: float
    runs_a: int
    runs_b: int
    is_paired: bool

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves no room for "no change"."""
        return self.low_ratio is not None and self.high_ratio is not None and self.low_ratio * self.high_ratio > 0


def least_pairs(alpha: float) -> int:
    """The fewest pairs that could show anything at `alpha`: all n signs agree by chance in 2^(1-n)."""
    return 1 + math.ceil(math.log2(1 / alpha) - 1e-9)


def can_tell(runs_a: int, runs_b: int, is_paired: bool, alpha: float) -> bool:
    """Whether so many runs can give any interval at level 1 - `alpha` without assuming a distribution.

    Unpaired, the extreme order of ranks happens by chance in 2 / C(a + b, a).
    """
    if is_paired:
        return runs_a >= least_pairs(alpha)
    return min(runs_a, runs_b) > 1 and 2 / math.comb(runs_a + runs_b, runs_a) <= alpha


def paired_shift(a: Floats, b: Floats, alpha: float = 0.05) -> Shift:
    """The shift of neighbours in time: median of the Walsh averages of ln(b / a).

    `a` and `b` have shape (pairs,), positive, in the same order, two pairs at least.
    Hodges & Lehmann (1963); Wilcoxon's signed-rank test.
    """
    differences = np.log(b) - np.log(a)
    count = len(differences)
    value = float(_walsh_medians(differences[None, :])[0])
    error = _error(_walsh_medians(differences[_picks(count)]), count)
    half = _half_width(error, count - 1, alpha) if can_tell(count, count, True, alpha) else None
    return Shift(
        value_ratio=math.expm1(value),
        low_ratio=None if half is None else math.expm1(value - half),
        high_ratio=None if half is None else math.expm1(value + half),
        p_value=_signed_rank(differences),
        error_ratio=error,
        runs_a=count,
        runs_b=count,
        is_paired=True,
    )


def unpaired_shift(a: Floats, b: Floats, alpha: float = 0.05) -> Shift:
    """The shift of two sets that were not interleaved: median of all ln(b) - ln(a).

    `a` has shape (runs_a,), `b` (runs_b,), positive, two runs each at least.
    Hodges & Lehmann (1963); Wilcoxon's rank-sum test.
    """
    from scipy.stats import mannwhitneyu

    logs_a, logs_b = np.log(a), np.log(b)
    value = float(_two_medians(logs_a[None, :], logs_b[None, :])[0])
    resampled = _two_medians(logs_a[_picks(len(a))], logs_b[_picks(len(b), stream=1)])
    error = _error(resampled, min(len(a), len(b)))
    can_be_told = can_tell(len(a), len(b), False, alpha)
    half = _half_width(error, len(a) + len(b) - 2, alpha) if can_be_told else None
    return Shift(
        value_ratio=math.expm1(value),
        low_ratio=None if half is None else math.expm1(value - half),
        high_ratio=None if half is None else math.expm1(value + half),
        p_value=float(mannwhitneyu(logs_a, logs_b).pvalue),
        error_ratio=error,
        runs_a=len(a),
        runs_b=len(b),
        is_paired=False,
    )


def noise_floor_ratio(a: Floats) -> float:
    """How far two sets of as many runs lie apart by chance at one and the same setting, as one standard deviation.

    From the runs of A alone, shape (runs,): the error of their own Hodges-Lehmann centre, once for each set.
    """
    return 2**0.5 * _error(_walsh_medians(np.log(a)[_picks(len(a))]), len(a))


@functools.cache
def _picks(count: int, stream: int = 0) -> NDArray[np.int64]:
    """Seeded, so that the same runs give the same interval."""
    return np.random.default_rng([count, stream]).integers(0, count, (RESAMPLES, count))


def _error(medians: Floats, count: int) -> float:
    """Standard deviation of the estimate; resamples of n runs spread too little by (n - 1) / n."""
    return float(np.std(medians)) * math.sqrt(count / (count - 1))


def _walsh_medians(rows: Floats) -> Floats:
    """Median of all averages of two (each with itself too), for each row."""
    first, second = np.triu_indices(rows.shape[1])
    return np.asarray(np.median((rows[:, first] + rows[:, second]) / 2, axis=1))


def _two_medians(a: Floats, b: Floats) -> Floats:
    """Median of all differences b - a, for each row."""
    return np.asarray(np.median((b[:, :, None] - a[:, None, :]).reshape(len(a), -1), axis=1))


def _half_width(error: float, freedom: int, alpha: float) -> float:
    """Student's quantile times the bootstrap's standard error (Efron & Tibshirani 1993, chapter 12).

    A percentile interval of 10 values would cover 90 % where 95 % is asked for, and would need many more
    resamples to see its far ends.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha / 2)) * error


def _signed_rank(differences: Floats) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0
