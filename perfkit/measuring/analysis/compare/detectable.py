"""How small an effect could these runs have shown, and how many would show a given one?

An alarm takes an estimate x of the shift with x >= t s (the interval excludes zero) and x >= m (the change
matters): t is Student's quantile, s the standard error as estimated, m the threshold. With a true shift d,
true standard error e and f degrees of freedom, x = d + e Z and s = e sqrt(chi2_f / f), so an alarm is raised
where d >= max(m, t s) - e Z. The effect that is found with probability .8 is the .8 quantile of the right side.

For m = 0, many runs and e = c sqrt(2 / n), c the coefficient of variation of a run, this is the known
n = 15.7 (c / d)^2 a side, 15.7 = 2 (z(.975) + z(.8))^2 (Lehr 1992, who rounds to 16).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.compare.shift import least_pairs

POWER = 0.8
_DRAWS = 20_000
_MOST_PAIRS = 10_000


def detectable_ratio(error_ratio: float, freedom: int, threshold_ratio: float, alpha: float = 0.05) -> float:
    """The smallest change that an alarm is raised for in 80 % of comparisons like this one.

    `error_ratio` is the standard error of the shift, `freedom` its degrees of freedom (pairs - 1, or runs - 2).
    """
    from scipy.special import stdtrit

    student = float(stdtrit(freedom, 1 - alpha / 2))
    normal, scale = _draws(freedom)
    needed = np.maximum(threshold_ratio, student * error_ratio * scale) - error_ratio * normal
    return float(np.quantile(needed, POWER))


def pairs_needed(spread_ratio: float, effect_ratio: float, threshold_ratio: float, alpha: float = 0.05) -> int | None:
    """Pairs that find a change of `effect_ratio` in 80 % of comparisons; None when no sensible number does.

    `spread_ratio` is the coefficient of variation of one run. Effects up to the threshold raise no alarm by design.
    """

    def is_enough(pairs: int) -> bool:
        error = spread_ratio * math.sqrt(2 / pairs)
        return detectable_ratio(error, pairs - 1, threshold_ratio, alpha) <= effect_ratio

    low, high = least_pairs(alpha) - 1, least_pairs(alpha)
    while not is_enough(high):
        low, high = high, 2 * high
        if high > _MOST_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@functools.lru_cache(maxsize=32)
def _draws(freedom: int) -> tuple[Floats, Floats]:
    """Standard normal values, and roots of chi-square over its degrees of freedom. Seeded."""
    source = np.random.default_rng(freedom)
    return source.standard_normal(_DRAWS), np.sqrt(source.chisquare(freedom, _DRAWS) / freedom)
