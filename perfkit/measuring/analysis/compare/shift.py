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

RESAMPLES = 4_000
METHOD = "Hodges-Lehmann shift of the runs, bootstrap interval widened for small numbers (Hesterberg 2015)"


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
    resampled = _walsh_medians(differences[_picks(count)])
    tail = _tail(alpha, count - 1, count)
    return Shift(
        value_ratio=math.expm1(float(_walsh_medians(differences[None, :])[0])),
        **_ends(resampled, tail, can_tell(count, count, True, alpha)),
        p_value=_signed_rank(differences),
        error_ratio=_error(resampled, count),
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
    resampled = _two_medians(logs_a[_picks(len(a))], logs_b[_picks(len(b), stream=1)])
    tail = _tail(alpha, len(a) + len(b) - 2, min(len(a), len(b)))
    return Shift(
        value_ratio=math.expm1(float(_two_medians(logs_a[None, :], logs_b[None, :])[0])),
        **_ends(resampled, tail, can_tell(len(a), len(b), False, alpha)),
        p_value=float(mannwhitneyu(logs_a, logs_b).pvalue),
        error_ratio=_error(resampled, min(len(a), len(b))),
        runs_a=len(a),
        runs_b=len(b),
        is_paired=False,
    )


def noise_floor_ratio(a: Floats) -> float:
    """How far two sets of as many runs lie apart by chance at one and the same setting, as one standard deviation.

    From the runs of A alone, shape (runs,): two resamples of them against each other.
    """
    logs = np.log(a)
    return _error(_two_medians(logs[_picks(len(a))], logs[_picks(len(a), stream=1)]), len(a))


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


def _tail(alpha: float, freedom: int, count: int) -> float:
    """The share of resamples below the lower end: Student's quantile and the small-sample factor on the normal scale.

    A plain percentile interval of 10 values covers 90 % where 95 % is asked for.
    """
    from scipy.special import ndtr, stdtrit

    return float(ndtr(-stdtrit(freedom, 1 - alpha / 2) * math.sqrt(count / (count - 1))))


def _ends(medians: Floats, tail: float, can_be_told: bool) -> dict[str, float | None]:
    if not can_be_told:
        return {"low_ratio": None, "high_ratio": None}
    low, high = np.quantile(medians, [tail, 1 - tail])
    return {"low_ratio": math.expm1(float(low)), "high_ratio": math.expm1(float(high))}


def _signed_rank(differences: Floats) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0
