"""How do readings lie on disk, so that a kill at any instant loses at most the last line?

A text file of lines that end in a newline; a line without one is a torn tail and is not read.
The first line names format and version. `+` declares a series under a small number, `@` sets the
time of the lines after it, any other line is a value of a declared series:

    perfkit-series 1
    + 0 <tab> thread:1234:worker-0 <tab> cpu <tab> s
    @ 81234567890
    0 1.25
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from perfkit.errors import ArchiveError
from perfkit.measuring.collectors.collector import SeriesRow

HEADER = "perfkit-series 1"


class Reading(NamedTuple):
    """A value just read, before it has a time."""

    source: str
    name: str
    unit: str
    value: float


class SeriesWriter:
    """Appends readings, and hands each instant to the kernel at once. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._write([HEADER])

    def append(self, time_ns: int, readings: Iterable[Reading]) -> None:
        """Write what was read at one instant."""
        lines = [f"@ {time_ns}"]
        for reading in readings:
            key = reading[:3]
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._numbers)
                lines.append(f"+ {number}\t" + "\t".join(_plain(part) for part in key))
            lines.append(f"{number} {reading.value!r}")
        self._write(lines)

    def _write(self, lines: list[str]) -> None:
        self._file.write(("\n".join(lines) + "\n").encode())
        self._file.flush()

    def __enter__(self) -> SeriesWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()


def _plain(part: str) -> str:
    """A thread may be named anything; tabs and line ends would break the line."""
    return " ".join(part.split())


def read_series(path: Path) -> list[SeriesRow]:
    """Every whole row of a series file; raises ArchiveError when it is no such file."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise ArchiveError(f"cannot read series file {path}: {error.strerror}; was its sampler started?") from error
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines or lines[0] != HEADER:
        raise ArchiveError(f"{path} does not start with {HEADER!r}; it is no series file of this version")
    return list(_rows(lines[1:]))


def _rows(lines: Iterable[str]) -> Iterator[SeriesRow]:
    series: dict[str, tuple[str, str, str]] = {}
    time_ns = 0
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark == "@":
            time_ns = int(rest)
        elif mark == "+":
            number, source, name, unit = rest.split("\t")
            series[number] = (source, name, unit)
        else:
            source, name, unit = series[mark]
            yield SeriesRow(time_ns, source, name, unit, float(rest))
