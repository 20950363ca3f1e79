"""What does `nvidia-smi --query-gpu=… --format=csv` say, with units or without, in whatever columns?

The user chooses the columns; a loop may repeat the heading; several GPUs follow one another. A GPU is
known by its uuid, else its bus, else its index. The times have no zone and are read as UTC.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.gpu_columns import Column, GpuRows, Instant, is_untold
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.instants import epoch_ns
from perfkit.measuring.importers.source import Source

NAME = "nvidia-smi CSV"
_HEADING = re.compile(r"([\w.]+)\s*(?:\[(.*)\])?")
_SERIES = {
    "utilization.gpu": ("gpu_util", "ratio"),
    "utilization.memory": ("memory_util", "ratio"),
    "memory.used": ("memory_used", "bytes"),
    "memory.reserved": ("memory_reserved", "bytes"),
    "memory.total": ("memory_total", "bytes"),
    "power.draw": ("power", "W"),
    "power.draw.average": ("power", "W"),
    "power.draw.instant": ("power_instant", "W"),
    "temperature.gpu": ("temperature", "°C"),
    **dict.fromkeys(("clocks.sm", "clocks.current.sm"), ("sm_clock", "Hz")),
    **dict.fromkeys(("clocks.mem", "clocks.current.memory"), ("memory_clock", "Hz")),
    **dict.fromkeys(("clocks_throttle_reasons.active", "clocks_event_reasons.active"), ("throttle", "mask")),
}
# What people call them in logs of their own that poll nvidia-smi.
_HOME_MADE = {
    "gpu_utilization": "utilization.gpu",
    "gpu_util": "utilization.gpu",
    "memory_utilization": "utilization.memory",
    "memory_used": "memory.used",
    "memory_total": "memory.total",
    "power_draw": "power.draw",
    "temperature": "temperature.gpu",
}
_IDENTITY = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index")
_NS_PER_US = 1_000
_NO_TIME = "time stamp that cannot be read"
_NOTHING = "no value in any of its columns"


def matches(head: str) -> bool:
    """By the names of the columns: one of nvidia-smi's own, or a log of somebody's own with nothing else in it."""
    names = [_split(cell)[0] for cell in headings(head)]
    own = {*_HOME_MADE, *_IDENTITY, "timestamp", "name", "gpu_name"}
    is_home_made = "timestamp" in names and set(names) <= own and any(name in _HOME_MADE for name in names)
    return is_home_made or any(name in _SERIES for name in names)


def read(source: Source) -> Imported:
    """The columns that have a series, row by row."""
    tally, rows = Tally(), GpuRows()
    table = Table(source, tally)
    columns = columns_of(table.columns)
    names = [_split(heading)[0] for heading in table.columns]
    for number, row in enumerate(table.rows()):
        cells = dict(zip(names, (cell.strip() for cell in row), strict=True))
        time_ns = _time_ns(cells.get("timestamp"), number)
        if time_ns is None:
            tally.dropped[_NO_TIME] += 1
        elif not _keep(rows, columns, row, Instant(time_ns=time_ns, source=_source(cells))):
            tally.dropped[_NOTHING] += 1
        else:
            tally.kept += 1
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="none", clock="calendar, no zone: read as UTC", scope="window", basis="none"),
        series=tuple(rows.series),
        notes=(*source.notes, *rows.notes(), *_remarks(names, columns)),
    )


def columns_of(headings_: Sequence[str]) -> list[Column]:
    """The columns that have a series; of two that give the same, the first."""
    found: dict[str, Column] = {}
    for place, heading in enumerate(headings_):
        name, unit = _split(heading)
        series = _SERIES.get(_HOME_MADE.get(name, name))
        if series is not None and series[0] not in found:
            found[series[0]] = Column(place=place, heading=name, name=series[0], unit=series[1], written_unit=unit)
    return list(found.values())


def _keep(rows: GpuRows, columns: Sequence[Column], row: Sequence[str], instant: Instant) -> bool:
    return any([rows.add(column, row[column.place], instant) for column in columns])


def _split(heading: str) -> tuple[str, str | None]:
    """`utilization.gpu [%]` is a name and a unit."""
    match = _HEADING.fullmatch(heading.strip().lstrip("#").strip())
    if match is None:
        return heading.strip().lower(), None
    return match[1].lower(), match[2]


def _source(cells: Mapping[str, str]) -> str:
    for name in _IDENTITY:
        identity = cells.get(name, "")
        if not is_untold(identity):
            return f"gpu:{identity}" if "uuid" in name else f"gpu:{'index' if name == 'index' else 'bus'}:{identity}"
    return "gpu:index:0"


def _time_ns(text: str | None, number: int) -> int | None:
    """Nanoseconds since the epoch; without a column of times the rows are counted as a second apart."""
    if text is None:
        return number * NS_PER_S
    with contextlib.suppress(ValueError):
        return epoch_ns(text.replace("/", "-"))
    try:
        seconds = float(text)
    except ValueError:
        return None
    is_time = 0 <= seconds < 1e11  # a float holds such an epoch to the microsecond
    return round(seconds * 1e6) * _NS_PER_US if is_time else None


def _remarks(names: Sequence[str], columns: Sequence[Column]) -> Iterator[str]:
    used = {column.heading for column in columns} | {"timestamp", "name", "gpu_name", *_IDENTITY}
    if unused := [name for name in names if name not in used]:
        yield f"columns without a series of ours: {', '.join(unused)}"
    if any(name in _HOME_MADE for name in names):
        yield "the columns are of somebody's own making: numbers without a unit are read in nvidia-smi's"
    if "timestamp" not in names:
        yield "no column of times: the rows are taken as a second apart"
    if not any(name in _IDENTITY for name in names):
        yield "no column says which GPU a row is of: all are taken as one GPU's"
    if not any(column.name == "gpu_util" for column in columns):
        yield "no column of utilisation: whether the GPU was busy is not known"
