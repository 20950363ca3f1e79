"""How do the points of `perfkit scan --json` become rows of a table, and settings places on an axis?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfkit.errors import ConfigError
from perfkit.measuring.load.shape import CHANGING
from perfkit.units import format_number, format_rate

Point = Mapping[str, Any]
Points = Sequence[Point] | Mapping[str, Sequence[Point]]
"""One series of points, or several by their label (for example two payload sets)."""

QUANTILES = ("p50", "p95", "p99")
_SPREAD = 4.0  # from this ratio of largest to smallest on, equal factors get equal distances


def labelled(points: Points) -> Iterator[tuple[str, Point]]:
    """Every point with the label of its series; "" when there is but one."""
    series = points if isinstance(points, Mapping) else {"": points}
    for label, members in series.items():
        for point in members:
            yield label, point


def setting_of(point: Point, varied: str) -> Any:
    """The value that this point has for the varied setting; a bare name finds a dotted one, "" finds none ("")."""
    values: Mapping[str, Any] = point["varied"]
    if varied in values:
        return values[varied]
    if not varied:
        return ""
    tails = [name for name in values if name.endswith(f".{varied}") or varied.endswith(f".{name}")]
    if len(tails) == 1:
        return values[tails[0]]
    raise ConfigError(f"the point varies {', '.join(values) or 'nothing'}, not {varied}; name one that it varies")


def quantile_columns(point: Point, quantile: str) -> dict[str, Any]:
    """`p99_s`, `p99_low_s`, `p99_high_s`, `p99_needs_s` of a point; absent stays None."""
    figures = (point.get("latency_s") or {}).get(quantile) or {}
    names = {"value": "s", "low": "low_s", "high": "high_s", "needs_s": "needs_s"}
    return {f"{quantile}_{name}": figures.get(key) for key, name in names.items()}


def places(settings: Iterable[Any]) -> dict[Any, float]:
    """Where each setting stands on the axis: by factors of two when they spread widely, else one step apart."""
    distinct = list(dict.fromkeys(settings))
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct):
        return {value: float(at) for at, value in enumerate(distinct)}
    distinct.sort()
    if distinct and distinct[0] > 0 and distinct[-1] / distinct[0] >= _SPREAD:
        return {value: math.log2(value) for value in distinct}
    return {value: float(at) for at, value in enumerate(distinct)}


def place_of(value: float, known: Mapping[float, float]) -> float:
    """The place of any number on such an axis, between its neighbours' places; outside it stays at the end."""
    values = sorted(known)
    value = min(max(value, values[0]), values[-1])
    if all(setting > 0 and place == math.log2(setting) for setting, place in known.items()):
        return math.log2(value)
    right = next(at for at, setting in enumerate(values) if setting >= value)
    if values[right] == value:
        return known[value]
    low, high = values[right - 1], values[right]
    return known[low] + (known[high] - known[low]) * (value - low) / (high - low)


def setting_text(value: Any) -> str:
    """A setting as an axis label: 0.002 -> `0.002`, 8 -> `8`."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def count_text(count: float | None) -> str:
    """A whole number of things: 96 -> `96`, 1259 -> `1,259`."""
    return format_number(count, digits=1)


def loop_text(points: Iterable[Point]) -> str:
    """How points were loaded, as far as they have it in common: `closed loop, 8 users`; "" when nobody knows."""
    loads = [load for point in points if (load := point.get("load"))]
    if not loads:
        return ""
    changing = {profile for load in loads if (profile := load.get("profile")) in CHANGING}
    if changing:
        return f"{loads[0]['loop']} loop, {' and '.join(sorted(changing))}"
    if all(load.get("arrivals") == "replay" for load in loads):
        return "open loop, replayed schedule"
    if loads[0]["loop"] == "open":
        rates = {load["rate_rps"] for load in loads}
        return f"open loop, {format_rate(rates.pop())}" if len(rates) == 1 else "open loop"
    users = {load["concurrency"] for load in loads}
    return f"closed loop, {users.pop()} users" if len(users) == 1 else "closed loop"


def knees_by_label(knee: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Label -> knee, from one knee (label "") or from one a series; series without a knee are left out."""
    by_label = {"": knee} if knee and "setting" in knee else knee or {}
    return {label: one for label, one in by_label.items() if one is not None}


def knee_text(knee: Mapping[str, Any]) -> str:
    """The interval of a knee: `2 to 4`, or `4` when both ends are the same."""
    low, high = (_end_text(float(knee[end])) for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _end_text(value: float) -> str:
    """A setting that was measured as it is, a place between two of them to three digits."""
    return f"{value:g}" if value.is_integer() else format_number(value)
