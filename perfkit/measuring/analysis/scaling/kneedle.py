"""Where does Kneedle put the knee, and how far does that depend on where the scan happened to end?

Kneedle (Satopää et al. 2011, by the package kneed) scales both axes to their range and takes the point farthest above
the diagonal. So the answer moves with the range, a line has none, and of several bends the first one counts. It is
therefore asked again with the scan cut short by one point and by two, for every bend that it finds, and its answer is
the interval of all answers.
"""

from __future__ import annotations

import numpy as np

from perfkit.measuring.analysis.scaling.curve import Curve
from perfkit.measuring.analysis.scaling.refusal import Refusal

LEAST_POINTS = 3  # fewer have no middle
LEAST_CUT_POINTS = 5  # a shorter range than this says nothing of its own
CUTS = 2


def kneedle(curve: Curve) -> tuple[float, float, float] | Refusal:
    """The knee of the whole scan, and the smallest and largest answer over all ranges."""
    count = len(curve.values)
    if count < LEAST_POINTS:
        return Refusal(reason=f"{count} usable points; it takes {LEAST_POINTS} to see a bend")
    whole = _bends(curve, count)
    if not whole:
        return Refusal(reason="no bend above the noise: over this range the curve is a line, or still steepens")
    cut = [bend for end in range(max(count - CUTS, LEAST_CUT_POINTS), count) for bend in _bends(curve, end)]
    return whole[0], min(whole + cut), max(whole + cut)


def _bends(curve: Curve, count: int) -> list[float]:
    """Every knee over the first `count` values, the sharpest first."""
    from kneed import KneeLocator

    values, rates = np.array(curve.values[:count]), curve.rates[:count]
    height = float(np.ptp(rates))
    if height == 0:
        return []
    located = KneeLocator(values, rates, curve="concave", direction="increasing", online=True)
    known = np.nan_to_num((curve.highs - curve.lows)[:count] / 2)
    bends = {
        float(knee): float(located.y_difference[place])
        for knee in located.all_knees
        if located.y_difference[place := int(np.argmin(np.abs(values - knee)))] * height > known[place]
    }
    return sorted(bends, key=lambda knee: -bends[knee])
