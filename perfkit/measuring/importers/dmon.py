"""What does `nvidia-smi dmon` say, whichever groups of columns were asked for?

Two heading lines begin with `#`, names and units, and come again every so often; `-` is not supported,
never zero. Times stand there only with `-o T` or `-o DT`. Its `sm` is the share of time in which any kernel
ran, which is our `gpu_util`, and not how many multiprocessors worked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.gpu_columns import Column, GpuRows, Instant
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "nvidia-smi dmon"
_SERIES = {
    "pwr": ("power", "W"),
    **dict.fromkeys(("temp", "gtemp"), ("temperature", "°C")),
    "sm": ("gpu_util", "ratio"),
    "mem": ("memory_util", "ratio"),
    "mclk": ("memory_clock", "Hz"),
    "pclk": ("sm_clock", "Hz"),
    "fb": ("memory_used", "bytes"),
    "rxpci": ("pcie_rx_rate", "bytes/s"),
    "txpci": ("pcie_tx_rate", "bytes/s"),
}
_HEADING = re.compile(r"#\s*(?:Date\s+)?(?:Time\s+)?gpu\b", re.IGNORECASE)
_DAY_S = 86_400
_CUT = "another number of cells than the heading"
_NO_GPU = "no GPU's number, or a time that cannot be read"
_BEFORE = "row above the first heading"


def matches(head: str) -> bool:
    """By its heading, which names the column `gpu` first, or after date and time."""
    return any(_HEADING.match(line) for line in head.splitlines()[:50])


def read(source: Source) -> Imported:
    """The columns that have a series, row by row."""
    tally, log = Tally(), _Log()
    for line in source.lines():
        reason = log.take(line.split())
        if reason is None:
            continue
        if reason:
            tally.dropped[reason] += 1
        else:
            tally.kept += 1
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="none", clock=log.clock, scope="window", basis="none"),
        series=tuple(log.rows.series),
        notes=(*source.notes, *log.rows.notes(), *log.remarks()),
    )


class _Log:
    """Reads one line after the other. Used by one thread."""

    def __init__(self) -> None:
        self.rows = GpuRows()
        self._names: list[str] = []
        self._columns: list[Column] = []
        self._looks: dict[str, int] = {}  # GPU -> how many rows of it so far
        self._last_s = 0
        self._unused: dict[str, None] = {}

    @property
    def clock(self) -> str:
        """What the times are."""
        if "date" in self._names:
            return "calendar, no zone: read as UTC"
        return "time of day, no date" if "time" in self._names else "none"

    def take(self, words: list[str]) -> str | None:
        """None for a line that is no row, "" for a row that was kept, else why it was not."""
        if words and words[0].startswith("#"):
            words = [word for word in (words[0][1:], *words[1:]) if word]
            if not _is_row(words):
                self._take_heading([word.lower() for word in words])
                return None
        if not words:
            return None
        if not self._names:
            return _BEFORE
        return _CUT if len(words) != len(self._names) else self._take_row(words)

    def _take_heading(self, words: list[str]) -> None:
        """Names, then units: the units say `idx` where the names say `gpu`."""
        if "gpu" in words:
            self._names = words
            found = [(place, word, _SERIES[word]) for place, word in enumerate(words) if word in _SERIES]
            self._columns = [
                Column(place=place, heading=word, name=name, unit=unit, written_unit=None)
                for place, word, (name, unit) in found
            ]
            self._unused |= dict.fromkeys(word for word in words if word not in {*_SERIES, "date", "time", "gpu"})

    def _take_row(self, words: Sequence[str]) -> str:
        gpu = words[self._names.index("gpu")]
        time_ns = self._time_ns(words, gpu)
        if time_ns is None or not gpu.isdigit():
            return _NO_GPU
        instant = Instant(time_ns=time_ns, source=f"gpu:index:{gpu}")
        kept = [self.rows.add(column, words[column.place], instant) for column in self._columns]
        return "" if any(kept) else "no value in any of its columns"

    def _time_ns(self, words: Sequence[str], gpu: str) -> int | None:
        """From date and time, else the time of day, else the row's place at a second a look."""
        look = self._looks[gpu] = self._looks.get(gpu, -1) + 1
        if "time" not in self._names:
            return look * NS_PER_S
        day = words[self._names.index("date")] if "date" in self._names else "19700101"
        try:
            stamp = datetime.strptime(f"{day} {words[self._names.index('time')]}", "%Y%m%d %H:%M:%S")
        except ValueError:
            return None
        seconds = int(stamp.replace(tzinfo=UTC).timestamp())
        while "date" not in self._names and seconds < self._last_s:
            seconds += _DAY_S  # past midnight
        self._last_s = seconds
        return seconds * NS_PER_S

    def remarks(self) -> Iterator[str]:
        """What a reader of the figures should know."""
        if self._unused:
            yield f"columns without a series of ours: {', '.join(self._unused)}"
        if self.clock == "none":
            yield "no times: looks are taken as a second apart, which is dmon's usual pace"
        if not any(column.name == "gpu_util" for column in self._columns):
            yield "no column sm: whether the GPU was busy is not known"


def _is_row(words: Sequence[str]) -> bool:
    """Whether a line that begins with # is a row after all: it begins with numbers."""
    return bool(words) and words[0].isdigit() and all(word[0].isdigit() or word == "-" for word in words)
