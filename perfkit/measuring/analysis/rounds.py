"""How far do the rounds of an interleaved run lie apart by chance, so that a change must stand out from that?

Rounds are minutes apart, and a machine has slow minutes: on the machine where this was tried, rounds of one steady
service differed by 5 %. All blocks of a round share its minute, so intervals from blocks alone take that
for a change of the service. From LEAST_ROUNDS on the rounds themselves say how much they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from perfkit.measuring.analysis.blocks import Floats

LEAST_ROUNDS = 6  # two for each of three windows: fewer do not tell how rounds differ
# Own trials, rounds 5 % apart by chance: of steady runs of six rounds 3 % are called unsteady, instead of 20 % by
# blocks alone; of runs whose latency steps up by 40 % halfway 70 % are found, of eight rounds 95 %.
CONFIDENCE = 0.95


def split_rounds(values: Floats, sizes: Sequence[int]) -> list[Floats]:
    """The values of each round that has any; `sizes` of them in each."""
    return [part for part in np.split(values, np.cumsum(sizes)[:-1]) if len(part)]


def tell_noise(rounds: Sequence[object]) -> bool:
    """Whether there are enough rounds to say how much they differ."""
    return len(rounds) >= LEAST_ROUNDS


def half_widths(levels: Floats, windows: int) -> Floats:
    """Of each window's level, when a window is a mean of neighbouring rounds: intervals apart are a change.

    Tukey's honest significance with the rounds' spread inside the windows, one level a round in `levels`.
    """
    groups = np.array_split(levels, windows)
    freedom = len(levels) - windows
    spread = (sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / freedom) ** 0.5
    range_ = _studentized_range(windows, freedom)
    return np.array([range_ / 2 * spread / len(group) ** 0.5 for group in groups])


@cache
def _studentized_range(groups: int, freedom: int) -> float:
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(CONFIDENCE, groups, freedom))
