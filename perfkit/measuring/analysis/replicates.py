"""How far are runs of the same thing apart, and do their own intervals say so?

The unit is the run, never the request: what a fresh process, its memory and its core bring along is the same for
all requests of a run, so no interval within one run can show it (Treadmill, ISCA 2016: run-to-run hysteresis).
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfkit.measuring.analysis.blocks import Interval, mean_interval

FIGURES = ("throughput_rps", "p50_s", "p95_s", "p99_s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """One figure over n runs: mean with Student's 95 % interval, spread, and a typical run's own half-width.

    `spread_ratio` is the runs' standard deviation and `within_ratio` the median half-width of their own intervals,
    both relative; `extreme_ratio` is max / min. None is "not known".
    """

    n: int
    mean: Interval
    spread_ratio: float | None
    extreme_ratio: float | None
    within_ratio: float | None

    @property
    def exceeds_within(self) -> bool | None:
        """Whether runs are further apart than their own intervals let one expect: sd against half-width / 1.96."""
        if self.spread_ratio is None or self.within_ratio is None:
            return None
        return self.spread_ratio > self.within_ratio / 1.96 * _ALLOWANCE[min(self.n, 10)]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        ratios = {name: getattr(self, name) for name in ("spread_ratio", "extreme_ratio", "within_ratio")}
        return {"n": self.n, **self.mean.to_json(), **ratios, "exceeds_within": self.exceeds_within}


# How far a standard deviation of n runs exceeds the true one in 1 of 20 cases: sqrt(chi2_.95(n - 1) / (n - 1)).
_ALLOWANCE = {2: 1.96, 3: 1.73, 4: 1.61, 5: 1.54, 6: 1.49, 7: 1.45, 8: 1.42, 9: 1.39, 10: 1.37}


def between_runs(points: Sequence[Mapping[str, Any]]) -> dict[str, Between]:
    """Figure -> its spread over the runs that have it; a void run has none."""
    return {name: _between(list(_figures(points, name))) for name in FIGURES}


def _figures(points: Sequence[Mapping[str, Any]], name: str) -> Iterator[Mapping[str, Any]]:
    for point in points:
        found = point[name] if name.endswith("_rps") else point["latency_s"][name.removesuffix("_s")]
        if found["value"] is not None:
            yield found


def _between(found: Sequence[Mapping[str, Any]]) -> Between:
    values = [float(one["value"]) for one in found]
    halves = [
        (one["high"] - one["low"]) / 2 / one["value"]
        for one in found
        if one["value"] and one["low"] is not None and one["high"] is not None
    ]
    mean = mean_interval(np.array(values))
    is_spread = len(values) > 1 and bool(mean.value)
    return Between(
        n=len(values),
        mean=mean,
        spread_ratio=statistics.stdev(values) / mean.value if is_spread and mean.value else None,
        extreme_ratio=max(values) / min(values) if is_spread and min(values) > 0 else None,
        within_ratio=statistics.median(halves) if halves else None,
    )
