"""What does the table say that PyTorch's profiler prints (`key_averages().table()`)?

Every cell carries its unit. Names are cut to the column's width and end in `...` then. Operators nest, so
totals must not be added up; the share alone may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.imported import Imported, Profile, Tally, Timing, Weight
from perfkit.measuring.importers.source import Source
from perfkit.measuring.importers.stacks import TOP

NAME = "PyTorch profiler table"
_GAP = re.compile(r"\s{2,}")
_RULE = re.compile(r"[-\s]+")
_WHOLE = re.compile(r"Self (\w+) time total:\s*(\S+)")
_COLUMNS = {"Name", "Self CPU", "CPU total", "# of Calls"}
_CUT = "row with another number of cells than the heading"
_NO_TIME = "row without a time of its own"


def matches(head: str) -> bool:
    """By the names of the columns."""
    return any(set(_cells(line)) >= _COLUMNS for line in head.splitlines()[:20])


def read(source: Source) -> Imported:
    """One profile of CPU time, and one of the device's where the table has it."""
    tally, rows, totals = Tally(), [], {}
    heading: list[str] = []
    for line in source.lines():
        cells = _cells(line)
        if whole := _WHOLE.search(line):
            totals[whole[1]] = duration_s(whole[2])
        elif not line.strip() or _RULE.fullmatch(line):
            continue
        elif set(cells) >= _COLUMNS:
            heading = cells
        elif len(cells) != len(heading):
            tally.dropped[_CUT] += 1
        elif duration_s(cells[heading.index("Self CPU")]) is None:
            tally.dropped[_NO_TIME] += 1
        else:
            tally.kept += 1
            rows.append(dict(zip(heading, cells, strict=True)))
    devices = [name for name in ("CPU", "CUDA") if f"Self {name}" in heading]
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="as printed", clock="none", scope="none", basis="none"),
        profiles=tuple(_profile(name, rows, totals.get(name)) for name in devices if rows),
        notes=tuple(source.notes),
    )


def _cells(line: str) -> list[str]:
    return _GAP.split(line.strip())


def _profile(device: str, rows: list[dict[str, str]], total_s: float | None) -> Profile:
    weights = [_weight(device, row) for row in rows]
    whole_s = sum(weight.own for weight in weights) if total_s is None else total_s
    calls = sum(weight.count for weight in weights)
    top = tuple(sorted(weights, key=lambda one: -one.own)[:TOP])
    return Profile(name=f"{device} time", unit="s", total=whole_s, samples=calls, top=top)


def _weight(device: str, row: Mapping[str, str]) -> Weight:
    own, total = (duration_s(row.get(name, "")) or 0.0 for name in (f"Self {device}", f"{device} total"))
    return Weight(name=row["Name"], own=own, total=total, count=int(number(row["# of Calls"]) or 0))
