"""How many independent requests does a quantile need before it may be printed?

The early-stopping rule of MLPerf's load generator with no tolerance: a quantile p is certified with
confidence c from n = h + t requests, where t may exceed it and h is the smallest count with
I_p(h, t + 1) <= 1 - c (I is the regularised incomplete beta function). The floor is the case t = 1.
"""

from __future__ import annotations

import functools

CONFIDENCE = 0.95  # judgement: the floor of P99 is 473 effective requests; MLPerf's own .99 asks for 662
_SLOWER = 1  # t: the least number of requests that must lie beyond the quantile


@functools.cache
def floor_count(p: float, confidence: float = CONFIDENCE) -> int:
    """Smallest number of independent requests from which quantile `p` has a value."""
    from scipy.special import betainc

    low, high = 0, 1
    while betainc(high, _SLOWER + 1, p) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if betainc(middle, _SLOWER + 1, p) > 1 - confidence else (low, middle)
    return high + _SLOWER
