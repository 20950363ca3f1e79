"""At which run of a history did a figure move to another level?

E-divisive (Matteson & James 2014) on the logarithms: the split that separates a stretch of runs best by their
distances is kept when shuffling the runs rarely separates them as well; both halves are then split again. The
search runs in overlapping windows, with a weak limit (ten times the final one), so that a small early step is
not lost behind a large later one; then the weakest points go until each one left passes Welch's t-test between
its neighbouring stretches. Windows, limits and the weak pass are those of Apache Otava (Fleming et al. 2023).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.compare.shift import Shift, unpaired_shift
from perfkit.measuring.analysis.compare.verdict import MARGIN_RATIO

WINDOW = 50
P_VALUE = 0.001
_WEAKER = 10.0
_LEAST = 4  # runs in a stretch: from fewer no level can be told
_SHUFFLES = 199


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The figure moved between run `index` - 1 and run `index` of the history.

    `before` and `after` are medians of the neighbouring stretches, `shift` the second against the first.
    """

    index: int
    before: float
    after: float
    shift: Shift
    p_value: float

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return dataclasses.asdict(self)


def find_change_points(
    values: Sequence[float], p_value: float = P_VALUE, window: int = WINDOW, margin_ratio: float = MARGIN_RATIO
) -> tuple[ChangePoint, ...]:
    """Where the level of a history changed for good, in order; `values` are positive, the oldest first.

    Steps below `margin_ratio` are no change that matters.
    """
    series = np.asarray(values, dtype=np.float64)
    logs = np.log(series)
    points = sorted(_candidates(logs, p_value * _WEAKER, window))
    while points:
        edges = [0, *points, len(logs)]
        chances = [_chance(logs[start:at], logs[at:end], margin_ratio) for start, at, end in _triples(edges)]
        weakest = int(np.argmax(chances))
        if chances[weakest] <= p_value:
            return tuple(
                _change_point(series, triple, chance) for triple, chance in zip(_triples(edges), chances, strict=True)
            )
        del points[weakest]
    return ()


def _triples(edges: Sequence[int]) -> list[tuple[int, int, int]]:
    """For each point the start of the stretch before it, itself, and the end of the stretch after it."""
    return list(zip(edges, edges[1:], edges[2:], strict=False))


def _change_point(series: Floats, triple: tuple[int, int, int], chance: float) -> ChangePoint:
    start, at, end = triple
    before, after = series[start:at], series[at:end]
    return ChangePoint(
        index=at,
        before=float(np.median(before)),
        after=float(np.median(after)),
        shift=unpaired_shift(before, after),
        p_value=chance,
    )


def _candidates(logs: Floats, p_value: float, window: int) -> set[int]:
    """Split points that any window finds at the weak limit."""
    starts = range(0, max(1, len(logs) - window // 2), window // 2)
    found = ({start + point for point in _split(logs[start : start + window], p_value)} for start in starts)
    return set(itertools.chain.from_iterable(found))


def _split(logs: Floats, p_value: float) -> set[int]:
    """The change points inside one window, by repeated bisection."""
    if len(logs) < 2 * _LEAST:
        return set()
    at, separation = _best_split(_distances(logs))
    if not _is_rare(logs, separation, p_value):
        return set()
    right = {at + point for point in _split(logs[at:], p_value)}
    return {at} | _split(logs[:at], p_value) | right


def _distances(logs: Floats) -> Floats:
    return np.asarray(np.abs(logs[:, None] - logs[None, :]))


def _best_split(distances: Floats) -> tuple[int, float]:
    """Where two stretches differ most, and by how much: the scaled energy distance of the paper.

    `distances` has shape (runs, runs). For a split into m and k runs it is
    m k / (m + k) (2 mean|x - y| - mean|x - x'| - mean|y - y'|), the last two over distinct runs.
    """
    count = len(distances)
    sums = distances.cumsum(axis=0).cumsum(axis=1)
    at = np.arange(_LEAST, count - _LEAST + 1)
    rest = count - at
    first = sums[at - 1, at - 1]
    across = sums[at - 1, count - 1] - first
    second = sums[-1, -1] - first - 2 * across
    energy = 2 * across / (at * rest) - first / (at * (at - 1)) - second / (rest * (rest - 1))
    scaled = at * rest / count * energy
    best = int(np.argmax(scaled))
    return int(at[best]), float(scaled[best])


def _is_rare(logs: Floats, separation: float, p_value: float) -> bool:
    """Whether at most a share `p_value` of shuffles separates as well. Stops when that is decided."""
    source, reached = np.random.default_rng(len(logs)), 1
    allowed = p_value * (_SHUFFLES + 1)
    for _ in range(_SHUFFLES):
        if reached > allowed:
            return False
        reached += _best_split(_distances(source.permutation(logs)))[1] >= separation
    return reached <= allowed


def _chance(before: Floats, after: Floats, margin_ratio: float) -> float:
    """Welch's p-value of two neighbouring stretches; 1 for a step too small to matter, or a stretch too short."""
    from scipy.stats import ttest_ind

    step = float(np.median(after) - np.median(before))
    if min(len(before), len(after)) < _LEAST or abs(np.expm1(step)) < margin_ratio:
        return 1.0
    if np.ptp(before) == 0 == np.ptp(after):
        return 0.0
    return float(ttest_ind(before, after, equal_var=False).pvalue)
