"""What can throughput not exceed, whatever the server does inside?

Operational bounds (Denning and Buzen 1978): N users who each need R seconds alone and pause Z get at most
N / (R + Z); a station that is busy for U of the time at throughput X serves at most X / U = 1 / D. The two lines cross
at N* = (R + Z) / D: below it users wait for nobody, above it one more user only waits.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Interval
from perfkit.measuring.analysis.scaling.curve import Curve, closed_loop_of_users, mean_batch, superlinear
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.usable import interval_of

TOLERANCE = 0.03  # as the self-test of a run: a point further above a bound than this is an instrument's error
LEAST_BUSY_RATIO = 0.5  # judgement: a station less busy than this says little about its own limit
_LARGE_RATIO = 0.9  # of the largest mean batch; below it calls serve fewer requests in nearly the same time
LEAST_FLATNESS = 0.1  # d ln X / d ln N below which the largest throughput stands for the limit


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The two lines of a closed loop's curve, and where they cross.

    `alone_rps` is the throughput of one user and the slope of the first line, `ceiling_rps` the second line,
    `ceiling_of` what it was told from. `above` are the numbers of users whose throughput lies above a bound.
    """

    alone_rps: Interval
    ceiling_rps: Interval
    ceiling_of: str
    crossing: Interval
    above: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "refusal": None,
            "alone_rps": self.alone_rps.to_json(),
            "ceiling_rps": self.ceiling_rps.to_json(),
            "ceiling_of": self.ceiling_of,
            "crossing": self.crossing.to_json(),
            "above": list(self.above),
        }


def find_bounds(curve: Curve) -> Bounds | Refusal:
    """Both bounds over the users of a closed loop."""
    refusal = closed_loop_of_users(curve)
    if refusal is not None:
        return refusal
    if not curve.values or curve.values[0] != 1:
        return Refusal(reason="no usable point at 1 user, so the time that a request needs alone is not known")
    refusal = superlinear(curve)
    if refusal is not None:
        return refusal
    found = [one for one in (_by_workers(curve), _by_largest(curve)) if one is not None]
    if not found:
        return Refusal(
            reason="throughput still grows at the largest number of users and no station is busy, so no ceiling is "
            "in sight; scan more users"
        )
    ceiling, origin = min(found, key=lambda one: one[0].value or np.inf)
    alone = interval_of(curve.points[0]["throughput_rps"])
    return Bounds(
        alone_rps=alone,
        ceiling_rps=ceiling,
        ceiling_of=origin,
        crossing=_quotient(ceiling, alone),
        above=_above(curve, alone, ceiling),
    )


def _by_workers(curve: Curve) -> tuple[Interval, str] | None:
    """X / U of the model workers at the busiest of the points with the largest batches, which raise the limit."""
    batches = np.array([mean_batch(point) for point in curve.points])
    busy = np.array([point.get("workers_busy_ratio") or 0.0 for point in curve.points])
    busy = np.where(batches >= _LARGE_RATIO * batches.max(), busy, 0.0)
    place = int(np.argmax(busy))
    ratio = float(busy[place])
    if ratio < LEAST_BUSY_RATIO:
        return None
    origin = f"model workers, {units.format_percent(min(ratio, 1.0))} busy at {curve.values[place]:g} users"
    rate = interval_of(curve.points[place]["throughput_rps"])
    return _quotient(rate, Interval(value=ratio, low=ratio, high=ratio)), origin


def _by_largest(curve: Curve) -> tuple[Interval, str] | None:
    """The largest throughput, where the curve is flat; for a service that does not say how busy it is."""
    if len(curve.values) < 2:
        return None
    place = int(np.argmax(curve.rates))
    growth = np.log(curve.rates[-1] / curve.rates[-2]) / np.log(curve.values[-1] / curve.values[-2])
    if growth >= LEAST_FLATNESS:
        return None
    return interval_of(
        curve.points[place]["throughput_rps"]
    ), "the largest throughput, from which on more users give no more"


def _above(curve: Curve, alone: Interval, ceiling: Interval) -> tuple[float, ...]:
    """Where even the lower end of the throughput exceeds the upper end of a bound."""
    slope, most = (one.high or one.value or np.inf for one in (alone, ceiling))
    allowed = np.minimum(np.array(curve.values) * slope, most) * (1 + TOLERANCE)
    lows = np.where(np.isnan(curve.lows), curve.rates, curve.lows)
    return tuple(value for value, low, top in zip(curve.values, lows, allowed, strict=True) if low > top)


def _quotient(above: Interval, below: Interval) -> Interval:
    """The quotient of two intervals; an end is None where one that it takes is unknown."""
    return Interval(
        value=_divided(above.value, below.value),
        low=_divided(above.low, below.high),
        high=_divided(above.high, below.low),
    )


def _divided(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
