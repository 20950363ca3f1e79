"""How does a number become text? The only place where one does.

Every function takes the base unit named in its parameter and returns a short text with the unit.
Absent (`None` or NaN) is an en dash, never a zero.
"""

from __future__ import annotations

import math

ABSENT = "–"
_DURATIONS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def is_absent(value: float | None) -> bool:
    """Whether a figure is missing (None or not a number)."""
    return value is None or math.isnan(value)


def format_number(value: float | None, digits: int = 3) -> str:
    """Three significant digits without an exponent: 1234.5 -> `1,234`, 0.01234 -> `0.0123`."""
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def format_duration(seconds: float | None) -> str:
    """Seconds as text: 0.0412 -> `41.2 ms`; from two minutes on `2 min 5 s`."""
    if seconds is None or math.isnan(seconds):
        return ABSENT
    if math.isinf(seconds):
        return "∞"
    if abs(seconds) >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for size, unit in _DURATIONS:
        if abs(seconds) >= size:
            return f"{format_number(seconds / size)} {unit}"
    return "0 s" if seconds == 0 else f"{format_number(seconds / 1e-9)} ns"


def format_rate(per_second: float | None, unit: str = "req/s") -> str:
    """A rate: 15.72 -> `15.7 req/s`."""
    return ABSENT if is_absent(per_second) else f"{format_number(per_second)} {unit}"


def format_quantity(value: float | None, unit: str) -> str:
    """A quantity in a base unit with the prefix that suits it: 0.0412 J -> `41.2 mJ`, 1.98e9 Hz -> `1.98 GHz`."""
    if value is None or math.isnan(value):
        return ABSENT
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{format_number(value / size)} {prefix}{unit}"
    return f"{format_number(value)} {unit}"


def format_bytes(count: float | None) -> str:
    """Bytes in binary multiples: 1536 -> `1.50 KiB`."""
    if count is None or math.isnan(count):
        return ABSENT
    for size, unit in _BYTES:
        if abs(count) >= size:
            return f"{format_number(count / size)} {unit}"
    return f"{count:.0f} B"


def format_percent(ratio: float | None) -> str:
    """A ratio between 0 and 1 as per cent: 0.125 -> `12.5 %`."""
    return ABSENT if ratio is None or math.isnan(ratio) else f"{format_number(ratio * 100)} %"


def format_change(ratio: float | None) -> str:
    """A change as signed per cent: 0.16 -> `+16.0 %`."""
    text = format_percent(ratio)
    return f"+{text}" if ratio is not None and ratio > 0 else text


def format_interval(low: str, high: str) -> str:
    """Two formatted ends as one interval; a shared unit is written once."""
    low_number, _, low_unit = low.rpartition(" ")
    high_number, _, high_unit = high.rpartition(" ")
    if low_unit and low_unit == high_unit and "min" not in high_number:
        return f"{low_number} to {high_number} {high_unit}"
    return f"{low} to {high}"
