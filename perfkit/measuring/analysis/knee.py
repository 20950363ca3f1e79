"""From where on does more of a setting stop paying? An interval from several estimators, never one number.

(1) The elasticity d ln X / d ln N falls below 0.1; (2) the largest value whose upper latency bound keeps the
budget; (3) N* = (D + Z) X_max, where the bounds of a closed loop cross (Denning and Buzen 1978); (4) Kneedle,
the point farthest above the chord (Satopää et al. 2011). Each alone is unsafe: Kneedle depends on the range
of the scan.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.usable import Document, is_usable, rate_of

LEAST_ELASTICITY = 0.1  # judgement: 10 % more of the setting gives under 1 % more throughput
LEAST_POINTS = 3
_CONCURRENCY = ("concurrency", "load.concurrency")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Where one estimator puts the knee."""

    low: float
    high: float
    method: str


def find_knee(
    values: Sequence[Any], points: Sequence[Point | Document], p99_s: float | None = None
) -> dict[str, Any] | None:
    """The knee over the values of one varied setting; None when they are no numbers or no estimator sees one."""
    documents = [point.to_json() if isinstance(point, Point) else point for point in points]
    setting = _varied_name(values, documents)
    if setting is None:
        return None
    curve = sorted(
        ((float(value), point) for value, point in zip(values, documents, strict=True) if is_usable(point)),
        key=lambda pair: pair[0],
    )
    if len(curve) < LEAST_POINTS or curve[0][0] <= 0:
        return None
    found = [_by_elasticity(curve), _by_budget(curve, p99_s), _by_bounds(setting, curve), _by_chord(curve)]
    seen = [estimate for estimate in found if estimate is not None]
    if not seen:
        return None
    ordered = sorted(map(float, values))
    unfit = [value for value in ordered if value not in dict(curve)]
    left_out = [f"left out as unfit: {', '.join(map(_number, unfit))}"] if unfit else []
    low, high = min(estimate.low for estimate in seen), max(estimate.high for estimate in seen)
    return {
        "setting": setting,
        "low": _over_unfit(low, [value for value in reversed(ordered) if value < low], unfit),
        "high": _over_unfit(high, [value for value in ordered if value > high], unfit),
        "method": "; ".join([*(estimate.method for estimate in seen), *left_out]),
    }


def _over_unfit(end: float, beyond: Sequence[float], unfit: Sequence[float]) -> float:
    """An end of the interval, moved over the values next to it of which nothing is known."""
    return [end, *itertools.takewhile(unfit.__contains__, beyond)][-1]


def _varied_name(values: Sequence[Any], documents: Sequence[Document]) -> str | None:
    """The one varied setting that takes these numbers."""
    names = {name for document in documents for name in document["varied"]}
    for name in sorted(names):
        taken = [document["varied"].get(name) for document in documents]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in taken)
        if numeric and [float(value) for value in taken] == [float(value) for value in values]:
            return name if len(names) == 1 else None
    return None


Curve = Sequence[tuple[float, Document]]


def _by_elasticity(curve: Curve) -> Estimate | None:
    """The first value after which throughput grows by less than a tenth of the setting's growth, in logs."""
    plain = _first_flat(curve, ("value", "value"))
    if plain is None:
        return None
    early, late = _first_flat(curve, ("low", "high")), _first_flat(curve, ("high", "low"))
    low = plain if early is None else min(early, plain)
    high = curve[-1][0] if late is None else max(late, plain)
    return Estimate(low=low, high=high, method=f"throughput gain below {LEAST_ELASTICITY} from {_number(plain)}")


def _first_flat(curve: Curve, ends: tuple[str, str]) -> float | None:
    """Judged between these ends of the throughput intervals of the larger and the smaller value."""
    upper, lower = ends
    for (value, point), (following, successor) in itertools.pairwise(curve):
        after, before = successor["throughput_rps"][upper], point["throughput_rps"][lower]
        if after is None or not before:
            continue
        if after <= 0 or math.log(after / before) / math.log(following / value) < LEAST_ELASTICITY:
            return value
    return None


def _by_budget(curve: Curve, p99_s: float | None) -> Estimate | None:
    if p99_s is None:
        return None
    basis = "p99" if all(point["latency_s"]["p99"]["high"] is not None for _, point in curve) else "p95"
    highs = [(value, point["latency_s"][basis]["high"]) for value, point in curve]
    kept = [value for value, high in highs if high is not None and high <= p99_s]
    if not kept or len(kept) == len(curve):
        return None  # the budget lies outside the range of the scan
    text = f"{basis.upper()} at most {units.format_duration(p99_s)} up to {_number(max(kept))}"
    return Estimate(low=max(kept), high=max(kept), method=text)


def _by_bounds(setting: str, curve: Curve) -> Estimate | None:
    """N* from the response time of a lone user and the largest throughput; closed-loop concurrency only."""
    if setting not in _CONCURRENCY or curve[0][0] != 1 or curve[0][1]["load"].get("loop") != "closed":
        return None
    alone_s = 1 / rate_of(curve[0][1])  # R + Z of one user, by the interactive law
    crossing = alone_s * max(rate_of(point) for _, point in curve)
    return Estimate(low=crossing, high=crossing, method=f"bounds cross at {_number(crossing)}")


def _by_chord(curve: Curve) -> Estimate | None:
    """Kneedle on a logarithmic axis; a bend smaller than one mean step of it counts as a line."""
    steps = np.log([value for value, _ in curve])
    rates = np.array([rate_of(point) for _, point in curve])
    if rates[-1] <= rates[0]:
        return None
    bend = (rates - rates[0]) / (rates.max() - rates[0]) - (steps - steps[0]) / (steps[-1] - steps[0])
    place = int(np.argmax(bend))
    if place in (0, len(curve) - 1) or bend[place] <= 1 / (len(curve) - 1):
        return None
    value = curve[place][0]
    return Estimate(low=value, high=value, method=f"Kneedle at {_number(value)}")


def _number(value: float) -> str:
    return units.format_number(value)
