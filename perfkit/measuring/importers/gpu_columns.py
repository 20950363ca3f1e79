"""Which of our GPU series is a column of nvidia-smi's, and in which unit is it written?

The names and units are those that perfkit's own collector records, so that a foreign log and a run of
ours are drawn and judged alike. What nvidia-smi calls utilisation is the share of time in which at least
one kernel ran; it says nothing of how full the GPU was.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from perfkit.measuring.collectors.collector import SeriesRow

_MIB = float(1 << 20)
# What one of a written unit is in the series' own.
_SIZES = {
    "ratio": {"%": 0.01},
    "bytes": {"B": 1.0, "KiB": 1024.0, "MiB": _MIB, "MB": _MIB, "GiB": 1024 * _MIB},  # its MB are MiB
    "W": {"W": 1.0, "mW": 1e-3},
    "Hz": {"MHz": 1e6, "GHz": 1e9},
    "°C": {"C": 1.0, "°C": 1.0},
    "bytes/s": {"MB/s": 1e6, "KB/s": 1e3},
    "J": {"J": 1.0, "mJ": 1e-3},
    "mask": {"": 1.0},
}
_USUAL = {"ratio": "%", "bytes": "MiB", "W": "W", "Hz": "MHz", "°C": "C", "bytes/s": "MB/s", "J": "mJ", "mask": ""}
_VALUE = re.compile(r"(0x[0-9a-fA-F]+|[-+]?\d+(?:\.\d+)?)\s*(\S*)")
NOT_TOLD = "not told by the driver"
OUT_OF_RANGE = "per cent outside 0 to 100"
NO_NUMBER = "no number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column with a series: where it stands, what the heading gives as its unit."""

    place: int
    heading: str
    name: str
    unit: str
    written_unit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """Whose values a row holds, and when."""

    time_ns: int
    source: str


class GpuRows:
    """Turns cells into series rows, and counts by column what could not be one. Used by one thread."""

    def __init__(self) -> None:
        self.series: list[SeriesRow] = []
        self.gaps: Counter[tuple[str, str]] = Counter()

    def add(self, column: Column, cell: str, instant: Instant) -> bool:
        """Keep the value of a cell; False when it holds none."""
        value = self._value(column, cell.strip())
        if isinstance(value, str):
            self.gaps[column.heading, value] += 1
            return False
        self.series.append(SeriesRow(instant.time_ns, instant.source, column.name, column.unit, value))
        return True

    def notes(self) -> list[str]:
        """One sentence a column and a reason: how many cells are absent, and not zero."""
        return [f"{heading}: {count} cells absent, {why}" for (heading, why), count in self.gaps.items()]

    def _value(self, column: Column, cell: str) -> float | str:
        """A cell's value in the series' unit, or why there is none."""
        if is_untold(cell):
            return f"{NOT_TOLD} ({cell or 'empty'})"
        match = _VALUE.fullmatch(cell)
        if match is None:
            return NO_NUMBER
        sizes = _SIZES[column.unit]
        written = match[2] or column.written_unit or _USUAL[column.unit]
        if written not in sizes:
            return f"in {written}, which is no unit of {column.name}"
        number = float(int(match[1], 16)) if match[1].startswith("0x") else float(match[1])
        value = number * sizes[written]
        return value if column.unit != "ratio" or 0 <= value <= 1 else OUT_OF_RANGE


def is_untold(cell: str) -> bool:
    """Whether a cell says that the driver gave no value: `[N/A]`, `[Not Supported]`, `-` and their like."""
    return cell in ("", "-", "N/A") or (cell.startswith("[") and cell.endswith("]"))
