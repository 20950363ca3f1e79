"""How does a point read as a row: every figure with its interval, what is missing said in words?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.showing.plots.points import QUANTILES, Point, count_text, setting_of, setting_text
from perfkit.showing.report.badge import Badge, badge_of
from perfkit.units import (
    ABSENT,
    format_bytes,
    format_duration,
    format_interval,
    format_number,
    format_percent,
    format_rate,
)

COLUMNS = ("throughput", "P50", "P95", "P99", "queue wait", "batch wait", "fill", "CPU cores")
_UNITS = {"_s": format_duration, "_bytes": format_bytes, "_ratio": format_percent, "_rps": format_rate}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number as text, and below it its interval or what it would take to have one."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A point in the results table."""

    label: str
    setting: str
    requests: str
    figures: tuple[Figure, ...]
    grade: str
    reasons: tuple[str, ...]
    errors: str
    badge: Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table as texts; columns in `words` are read from the left."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Figure, ...], ...]
    words: tuple[str, ...]
    caption: str = ""


def row_of(point: Point, label: str, varied: str) -> Row:
    """A point as texts; its figures are in the order of COLUMNS."""
    throughput = point.get("throughput_rps") or {}
    latency = point.get("latency_s") or {}
    stages = point.get("stages_s") or {}
    plain = (
        format_duration(_sum_of(stages, "preprocess_wait", "queue_wait")),
        format_duration(stages.get("batch_wait")),
        format_percent(point.get("batch_fill_ratio")),
        format_number(point.get("cpu_cores_used")),
    )
    return Row(
        label=label,
        setting=setting_text(setting_of(point, varied)),
        requests=count_text(point.get("requests")),
        figures=(
            _rate(throughput),
            *(_quantile(latency.get(quantile) or {}) for quantile in QUANTILES),
            *(Figure(text=text) for text in plain),
        ),
        grade=str(point["grade"]),
        reasons=tuple(str(reason) for reason in point.get("reasons") or ()),
        errors=", ".join(f"{code}: {count_text(count)}" for code, count in (point.get("errors") or {}).items()),
        badge=badge_of(point),
    )


def _sum_of(stages: Mapping[str, float | None], *names: str) -> float | None:
    known = [value for name in names if (value := stages.get(name)) is not None]
    return sum(known) if known else None


def _rate(throughput: Mapping[str, float | None]) -> Figure:
    value, low, high = (throughput.get(key) for key in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return Figure(text=format_rate(value))
    return Figure(text=format_rate(value), note=format_interval(format_number(low), format_number(high)))


def _quantile(figures: Mapping[str, float | None]) -> Figure:
    value, low, high, needs = (figures.get(key) for key in ("value", "low", "high", "needs_s"))
    if value is None:
        text = ABSENT if low is None else f"at least {format_duration(low)}"
        return Figure(text=text, note=f"a value needs {format_duration(needs)}" if needs is not None else "")
    if low is None:
        return Figure(text=format_duration(value))
    if high is None:
        return Figure(text=format_duration(value), note=f"{format_duration(low)} or more")
    return Figure(text=format_duration(value), note=format_interval(format_duration(low), format_duration(high)))


def facts(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as name and text, the unit read from the name's ending."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from facts(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", fact_text(str(name), value)


def fact_text(name: str, value: Any) -> str:
    """One value as text: `memory_bytes` 1073741824 -> `1.00 GiB`."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), None)
        return unit(value) if unit else setting_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(fact_text(name, item) for item in value) or ABSENT
    return str(value)
