"""How do a point's GPU figures read as rows: what worked, what it drew, and what the driver did not tell?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.showing.plots.points import Point, setting_of, setting_text
from perfkit.units import ABSENT, format_bytes, format_percent, format_quantity

GPU_COLUMNS = (
    "a kernel ran",
    "SMs that worked",
    "tensor cores",
    "memory used",
    "power",
    "per reply",
    "clock",
    "throttled",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One GPU under one point; its figures are in the order of GPU_COLUMNS, its gaps are sentences."""

    label: str
    figures: tuple[str, ...]
    gaps: tuple[str, ...]


def gpu_rows(series: Mapping[str, Sequence[Point]], varied: str) -> list[GpuRow]:
    """A row for every GPU of every point; none where no GPU was recorded."""
    return [
        _row(gpu, ", ".join(filter(None, (label, setting_text(setting_of(point, varied)), str(gpu["name"])))))
        for label, points in series.items()
        for point in points
        for gpu in point.get("gpus") or ()
    ]


def _row(gpu: Mapping[str, Any], label: str) -> GpuRow:
    return GpuRow(
        label=label,
        figures=(
            format_percent(gpu["gpu_util_ratio"]),
            format_percent(gpu["sm_active_ratio"]),
            format_percent(gpu["tensor_active_ratio"]),
            _memory(gpu["memory_used_bytes"], gpu["memory_total_bytes"]),
            format_quantity(gpu["power_w"], "W"),
            format_quantity(gpu["energy_per_request_j"], "J"),
            format_quantity(gpu["sm_clock_hz"], "Hz"),
            ABSENT if gpu["throttles"] is None else ", ".join(gpu["throttles"]) or "no",
        ),
        gaps=tuple(_gaps(gpu["missing"])),
    )


def _memory(used_bytes: float | None, total_bytes: float | None) -> str:
    used = format_bytes(used_bytes)
    return used if total_bytes is None or used_bytes is None else f"{used} of {format_bytes(total_bytes)}"


def _gaps(missing: Mapping[str, str]) -> Iterator[str]:
    """One sentence a reason, with the fields that it took away."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in missing.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"{', '.join(names)} not available: {reason}"
