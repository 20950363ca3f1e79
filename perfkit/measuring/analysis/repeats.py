"""Is the same payload over and over answered faster than different ones? Then a cache is being measured.

MLPerf's audit TEST04: a service fails when it answers one repeated sample at 1.10 times the rate of different
ones. Here both are measured several times in turn, the rates compared in pairs of neighbours, and the ratio
has an interval: it fails when the whole interval lies at 1.10 or more, and passes when it lies below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from perfkit.measuring.analysis.blocks import mean_interval

MOST_RATIO = 1.10
ORIGIN = "MLPerf inference, compliance test TEST04: fail from 1.10 on"
LEAST_PAIRS = 3  # fewer ratios have no interval worth the name

Verdict = Literal["repeats are faster", "repeats are not faster", "inconclusive"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRatio:
    """Rate with one repeated payload over the rate with different ones, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int
    verdict: Verdict


def judge_repeats(different_rps: Sequence[float], same_rps: Sequence[float]) -> RepeatRatio:
    """The ratio over pairs of neighbouring measurements, by Student's interval of its logarithm.

    Both take one rate a pair, in requests a second, above 0, and at least 3 of them.
    """
    assert len(different_rps) == len(same_rps) >= LEAST_PAIRS
    logs = np.log(np.asarray(same_rps, dtype=np.float64) / np.asarray(different_rps, dtype=np.float64))
    found = mean_interval(logs)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    ratio, low, high = (float(np.exp(one)) for one in (found.value, found.low, found.high))
    return RepeatRatio(ratio=ratio, low=low, high=high, pairs=len(logs), verdict=_verdict(low, high))


def _verdict(low: float, high: float) -> Verdict:
    if low >= MOST_RATIO:
        return "repeats are faster"
    return "repeats are not faster" if high < MOST_RATIO else "inconclusive"


def repeated_ratio(requests: int, different: int) -> float | None:
    """The share of requests that carried a payload which had been sent before; None without requests."""
    return max(0.0, 1 - different / requests) if requests else None
