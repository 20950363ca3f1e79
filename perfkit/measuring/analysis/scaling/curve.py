"""Which points make a curve over one setting? Those fit to decide something, in the order of that setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.point import Point
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.usable import Document, is_usable

_CONCURRENCY = ("concurrency", "load.concurrency")
_NORMAL_95 = 1.959964  # half the width of a 95 % interval in standard errors


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The usable points over one numeric setting, ascending; `unfit` are the values whose points are not usable."""

    setting: str
    values: tuple[float, ...]
    points: tuple[Document, ...]
    unfit: tuple[float, ...] = ()

    @property
    def rates(self) -> Floats:
        """Throughput in requests a second."""
        return self._throughput("value")

    @property
    def lows(self) -> Floats:
        """Lower ends of the throughput intervals; NaN where one is not known."""
        return self._throughput("low")

    @property
    def highs(self) -> Floats:
        """Upper ends of the throughput intervals; NaN where one is not known."""
        return self._throughput("high")

    @property
    def errors(self) -> Floats:
        """Standard errors of the throughput, from its interval and its counting; NaN where one is not known."""
        counted = np.array([_counting_ratio(point, worst=False) for point in self.points])
        return np.hypot((self.highs - self.lows) / (2 * _NORMAL_95), counted * self.rates)

    def _throughput(self, end: str) -> Floats:
        return np.array([point["throughput_rps"][end] for point in self.points], dtype=np.float64)


def curve_of(points: Iterable[Point | Document]) -> Curve | Refusal:
    """The curve over the one varied setting of these points."""
    documents = [point.to_json() if isinstance(point, Point) else point for point in points]
    names = sorted({name for document in documents for name in document["varied"]})
    if len(names) != 1:
        return Refusal(reason=f"a curve needs one varied setting, and here are {', '.join(names) or 'none'}")
    taken = [(document["varied"].get(names[0]), document) for document in documents]
    if not all(_is_positive(value) for value, _ in taken):
        return Refusal(reason=f"{names[0]} takes values that are no numbers above 0, so there is no scale to fit over")
    taken.sort(key=lambda pair: float(pair[0]))
    usable = [(float(value), document) for value, document in taken if is_usable(document)]
    return Curve(
        setting=names[0],
        values=tuple(value for value, _ in usable),
        points=tuple(document for _, document in usable),
        unfit=tuple(float(value) for value, document in taken if not is_usable(document)),
    )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _counting_ratio(point: Document, worst: bool) -> float:
    """How far replies counted between two instants may be off, relative to the throughput.

    N users in step reply all at once, so each window holds up to N replies more or fewer than its length says: in the
    worst case in every window, and with the standard deviation of an even spread otherwise. Long runs hardly feel it.
    """
    windows, requests = len(point.get("rounds") or ()), point.get("requests") or 0
    users = point["load"].get("concurrency") or 0
    if not windows or not requests:
        return 0.0
    return float(users * (windows if worst else (windows / 12) ** 0.5) / requests)


def mean_batch(point: Document) -> float:
    """Requests a call on average; 1 where there are no batches."""
    most = int((point["settings"].get("batch") or {}).get("max_size") or 1)
    return max(1.0, most * (point.get("batch_fill_ratio") or 0.0))


def closed_loop_of_users(curve: Curve) -> Refusal | None:
    """Why the values are no numbers of users in a closed loop; None when they are."""
    if any(point["load"].get("loop") != "closed" for point in curve.points):
        what = "a rate" if "rate" in curve.setting else curve.setting
        return Refusal(
            reason=f"{what} in an open loop is no number of users: throughput follows the arrivals; "
            "vary load.concurrency in a closed loop"
        )
    if curve.setting not in _CONCURRENCY:
        return Refusal(reason=f"{curve.setting} is no number of users; vary load.concurrency in a closed loop")
    return None


def superlinear(curve: Curve) -> Refusal | None:
    """Why N users get more than N times what a lone one gets, beyond both intervals; None where none does."""
    if not curve.values or curve.values[0] != 1:
        return None
    alone = curve.highs[0] if np.isfinite(curve.highs[0]) else curve.rates[0]
    alone *= 1 + _counting_ratio(curve.points[0], worst=True)
    for value, point, low in zip(curve.values, curve.points, curve.lows, strict=True):
        ratio = low * (1 - _counting_ratio(point, worst=True)) / alone
        if ratio > value:
            return Refusal(
                reason=f"superlinear: {value:g} users get at least {units.format_number(ratio)} times "
                "the throughput of one, as batching, a cache or a clock that rises with load gives"
            )
    return None
