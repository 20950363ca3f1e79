"""From where on does more of a setting stop paying? An interval from several estimators, never one number.

(1) The largest value whose upper latency bound keeps the budget; (2) the elasticity d ln X / d ln N falls below 0.1;
(3) N* = (R + Z) / D, where the bounds of a closed loop cross (Denning and Buzen 1978); (4) Kneedle. Kneedle alone is
no knee, because its answer depends on the range of the scan.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.scaling.bounds import find_bounds
from perfkit.measuring.analysis.scaling.curve import Curve, curve_of
from perfkit.measuring.analysis.scaling.kneedle import kneedle
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.usable import Document

LEAST_ELASTICITY = 0.1  # judgement: 10 % more of the setting gives under 1 % more throughput
LEAST_POINTS = 3
BUDGET, ELASTICITY, CROSSING, KNEEDLE = "latency budget", "elasticity", "crossing of the bounds", "Kneedle"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Where one estimator puts the knee, and how; or why it does not say. `low` and `high` go with `value`."""

    estimator: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    refusal: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return dataclasses.asdict(self)


def find_knee(points: Iterable[Point | Document], p99_s: float | None = None) -> dict[str, Any] | None:
    """The knee over the one varied setting; None when there is no such setting or no estimator sees a knee."""
    curve = curve_of(points)
    return None if isinstance(curve, Refusal) else merged(curve, estimate_knee(curve, p99_s))


def estimate_knee(curve: Curve, p99_s: float | None = None) -> tuple[Estimate, ...]:
    """What each of the four estimators says, refusals included."""
    if len(curve.values) < LEAST_POINTS:
        reason = f"{len(curve.values)} usable points; a knee takes {LEAST_POINTS}"
        return tuple(_refused(name, reason) for name in (BUDGET, ELASTICITY, CROSSING, KNEEDLE))
    return (_by_budget(curve, p99_s), _by_elasticity(curve), _by_bounds(curve), _by_kneedle(curve))


def merged(curve: Curve, estimates: Sequence[Estimate]) -> dict[str, Any] | None:
    """The interval that holds every estimate; it reaches over neighbours of which nothing is known."""
    seen = [one for one in estimates if one.refusal is None]
    if all(one.estimator == KNEEDLE for one in seen):
        return None
    low = min(one.low for one in seen if one.low is not None)
    high = max(one.high for one in seen if one.high is not None)
    ordered = sorted((*curve.values, *curve.unfit))
    unfit = ", ".join(f"{value:g}" for value in curve.unfit)
    return {
        "setting": curve.setting,
        "low": _over_unfit(low, [value for value in reversed(ordered) if value < low], curve.unfit),
        "high": _over_unfit(high, [value for value in ordered if value > high], curve.unfit),
        "method": "; ".join([*(one.method for one in seen), *([f"left out as unfit: {unfit}"] if unfit else [])]),
    }


def _over_unfit(end: float, beyond: Sequence[float], unfit: Sequence[float]) -> float:
    """An end of the interval, moved over the values next to it of which nothing is known."""
    return [end, *itertools.takewhile(unfit.__contains__, beyond)][-1]


def _refused(estimator: str, reason: str) -> Estimate:
    return Estimate(estimator=estimator, refusal=reason)


def _by_elasticity(curve: Curve) -> Estimate:
    """The first value after which throughput grows by less than a tenth of the setting's growth, in logs."""
    plain = _first_flat(curve, curve.rates, curve.rates)
    if plain is None:
        reason = f"throughput still gains at the largest value, {curve.values[-1]:g}"
        return _refused(ELASTICITY, reason)
    early, late = _first_flat(curve, curve.lows, curve.highs), _first_flat(curve, curve.highs, curve.lows)
    return Estimate(
        estimator=ELASTICITY,
        value=plain,
        low=plain if early is None else min(early, plain),
        high=curve.values[-1] if late is None else max(late, plain),
        method=f"throughput gain below {LEAST_ELASTICITY} from {plain:g}",
    )


def _first_flat(curve: Curve, after: Any, before: Any) -> float | None:
    """Judged between one end of the larger value's throughput interval and one of the smaller value's."""
    for place, (value, following) in enumerate(itertools.pairwise(curve.values)):
        upper, lower = float(after[place + 1]), float(before[place])
        if math.isnan(upper) or math.isnan(lower) or lower <= 0:
            continue
        if upper <= 0 or math.log(upper / lower) / math.log(following / value) < LEAST_ELASTICITY:
            return value
    return None


def _by_budget(curve: Curve, p99_s: float | None) -> Estimate:
    """Certainly within the budget up to `low`; up to `high` not certainly beyond it."""
    if p99_s is None:
        return _refused(BUDGET, "no latency budget was given")
    basis = "p99" if all(point["latency_s"]["p99"]["high"] is not None for point in curve.points) else "p95"
    budget = units.format_duration(p99_s)
    kept = _values_within(curve, basis, "high", p99_s)
    if not kept:
        return _refused(BUDGET, f"{basis.upper()} is not certainly within {budget} at any value")
    if curve.values[-1] in kept:
        return _refused(BUDGET, f"{basis.upper()} is within {budget} even at {curve.values[-1]:g}; scan further")
    possible = _values_within(curve, basis, "low", p99_s)
    return Estimate(
        estimator=BUDGET,
        value=max(kept),
        low=max(kept),
        high=max(kept + possible),
        method=f"{basis.upper()} at most {budget} up to {max(kept):g}",
    )


def _values_within(curve: Curve, basis: str, end: str, budget_s: float) -> list[float]:
    figures = [(value, point["latency_s"][basis][end]) for value, point in zip(curve.values, curve.points, strict=True)]
    return [value for value, figure in figures if figure is not None and figure <= budget_s]


def _by_bounds(curve: Curve) -> Estimate:
    bounds = find_bounds(curve)
    if isinstance(bounds, Refusal):
        return _refused(CROSSING, bounds.reason)
    value = bounds.crossing.value or np.nan
    low, high = (value if end is None else end for end in (bounds.crossing.low, bounds.crossing.high))
    return Estimate(
        estimator=CROSSING, value=value, low=low, high=high, method=f"bounds cross at {units.format_number(value)}"
    )


def _by_kneedle(curve: Curve) -> Estimate:
    found = kneedle(curve)
    if isinstance(found, Refusal):
        return _refused(KNEEDLE, found.reason)
    value, low, high = found
    ends = f" ({low:g} to {high:g} over other ranges)" if low != high else ""
    return Estimate(estimator=KNEEDLE, value=value, low=low, high=high, method=f"Kneedle at {value:g}{ends}")
