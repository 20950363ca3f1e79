"""What do vmstat, mpstat, pidstat and iostat say, as text?

Each row is the mean of the interval that ended at its time. The first report of vmstat and iostat is since the
machine started and no value of the run. %CPU of a process is of one core, so it may pass 100 %. vmstat does
not say the unit of its memory columns (`-S` changes it), so those are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from perfkit.clock import NS_PER_S
from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "sysstat text"
_BANNER = re.compile(r"Linux \S+ \(.*\)\s+\S+\s+_\w+_\s+\(\d+ CPU\)")
_VMSTAT = re.compile(r"^ *r +b +swpd +free ", re.MULTILINE)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")
_DATED = re.compile(r"(\d\d/\d\d/(?:\d\d)?\d\d|\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d(?: [AP]M)?")
_COMMA = re.compile(r"\d+,\d\d")  # sysstat writes no thousands, and two decimals by the locale
_FIGURE = re.compile(r"[\d.,]+")
_PERCENT = 0.01
_KIB = 1024.0
_RATES = ("in", "cs", "minflt/s", "majflt/s", "cswch/s", "nvcswch/s", "r/s", "w/s")
# Heading -> series, unit, size of one of it.
COLUMNS: dict[str, tuple[str, str, float]] = {
    **dict.fromkeys(("us", "%usr", "%user"), ("cpu_user", "ratio", _PERCENT)),
    **dict.fromkeys(("sy", "%sys", "%system"), ("cpu_system", "ratio", _PERCENT)),
    **dict.fromkeys(("id", "%idle"), ("cpu_idle", "ratio", _PERCENT)),
    **dict.fromkeys(("wa", "%iowait"), ("cpu_iowait", "ratio", _PERCENT)),
    **dict.fromkeys(("st", "%steal"), ("cpu_steal", "ratio", _PERCENT)),
    "%nice": ("cpu_nice", "ratio", _PERCENT),
    "%irq": ("cpu_irq", "ratio", _PERCENT),
    "%soft": ("cpu_softirq", "ratio", _PERCENT),
    "%guest": ("cpu_guest", "ratio", _PERCENT),
    "%wait": ("cpu_wait", "ratio", _PERCENT),
    "%CPU": ("cpu_of_one_core", "ratio", _PERCENT),
    "%util": ("busy", "ratio", _PERCENT),
    "r": ("runnable", "threads", 1.0),
    "b": ("blocked", "threads", 1.0),
    "RSS": ("memory_resident", "bytes", _KIB),
    "rkB/s": ("read", "bytes/s", _KIB),
    "wkB/s": ("written", "bytes/s", _KIB),
    **{
        name: (named, "1/s", 1.0)
        for name, named in zip(
            _RATES,
            (
                *("interrupts", "context_switches", "minor_faults", "major_faults"),
                *("voluntary_switches", "involuntary_switches", "reads", "writes"),
            ),
            strict=True,
        )
    },
}
SINCE_BOOT = "first report: since the machine started"
_AVERAGE = "average over the rows above it"
_NO_VALUE = "line without a value that is known"


def matches(head: str) -> bool:
    """By sysstat's first line, or vmstat's headings."""
    return bool(_BANNER.match(head.lstrip())) or bool(_VMSTAT.search(head[:2000]))


def read(source: Source) -> Imported:
    """Every value of every known column as a series."""
    tally, log = Tally(), _Log()
    series: list[SeriesRow] = []
    for line in source.lines():
        found, reason = log.take(line)
        if reason:
            tally.dropped[reason] += 1
        tally.kept += bool(found)
        series += found
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="as in the headings", clock=log.clock, scope="window", basis="none"),
        series=tuple(series),
        notes=(*source.notes, *log.notes()),
    )


class _Log:
    """Reads one line after the other: headings, times, rows."""

    def __init__(self) -> None:
        self.clock = "none"
        self._heading: list[str] = []
        self._is_vmstat = False
        self._seen: set[tuple[str, ...]] = set()  # headings under which a whole report was read
        self._skips_report = False
        self._at_s, self._rows, self._dated = 0, -1, False

    def take(self, line: str) -> tuple[list[SeriesRow], str]:
        """Values of a row, and why a row is dropped; neither for a line that is no row."""
        words = line.removeprefix("#").split()
        if not words or _BANNER.match(line) or words[0] == "procs":
            return [], ""
        if self._take_heading(words) or self._take_date(line):
            return [], ""
        if words[0] == "Average:":
            return [], _AVERAGE
        if not self._heading:
            return [], _NO_VALUE
        return self._take_row(words)

    def notes(self) -> Iterator[str]:
        """What a reader of the figures should know."""
        if self._is_vmstat:
            yield "memory and swap columns are left out: the file does not say their unit"
        if self.clock == "none":
            yield "no times: rows are taken as a second apart"

    def _take_heading(self, words: list[str]) -> bool:
        known = [word for word in words if word in COLUMNS]
        if len(known) < 2 or any(number(word) is not None for word in words[2:]):
            return False
        heading = words[1:] if words[0] == "avg-cpu:" else words
        self._is_vmstat = words[:2] == ["r", "b"]
        self._heading = ["time", *heading[1:]] if _TIME.fullmatch(words[0]) else heading
        first = (words[0] if words[0] in ("avg-cpu:", "Device", "Device:", "r") else "", *heading[1:])
        self._skips_report = bool(first[0]) and first not in self._seen
        self._seen.add(first)
        return True

    def _take_date(self, line: str) -> bool:
        """iostat -t writes the moment on a line of its own."""
        if not _DATED.fullmatch(line.strip()):
            return False
        self._at_s, self._dated = _epoch_s(line.strip()), True
        self.clock = "calendar, no zone: read as UTC"
        return True

    def _take_row(self, words: list[str]) -> tuple[list[SeriesRow], str]:
        cells = dict(zip(self._heading, words, strict=False))
        source = _source_of(cells, self._heading[0])
        decimal = "," if any(map(_COMMA.fullmatch, words)) else "."
        values = [(known, number(cells[name], decimal)) for name in cells if (known := COLUMNS.get(name))]
        found = [(known, value) for known, value in values if value is not None and value >= 0]
        if not found or not self._fits(words):
            return [], _NO_VALUE
        if self._skips_report:
            self._skips_report = not self._is_vmstat  # one row of vmstat, one table of iostat
            return [], SINCE_BOOT
        at_ns = self._instant_s(words) * NS_PER_S
        return [SeriesRow(at_ns, source, name, unit, sized(value, size)) for (name, unit, size), value in found], ""

    def _fits(self, words: Sequence[str]) -> bool:
        """Whether a row can belong to the heading: where no column holds a name, every word is a number."""
        heading = self._heading
        if heading[-1] == "Command":
            # A command may hold blanks, but one that begins with a number is a row of another table.
            return len(words) >= len(heading) and not _FIGURE.fullmatch(words[len(heading) - 1])
        if heading[0] == "time" or heading[0].rstrip(":") == "Device":
            return len(words) == len(heading)
        stamped = 2 if self._is_vmstat and _DATED.fullmatch(" ".join(words[-2:])) else 0
        plain = words[: len(words) - stamped]
        return len(words) == len(heading) + stamped // 2 and all(map(_FIGURE.fullmatch, plain))

    def _instant_s(self, words: Sequence[str]) -> int:
        """Of the row: its own time, the line's above it, else its place at a second a row."""
        stamp = " ".join(words[-2:])
        if self._is_vmstat and _DATED.fullmatch(stamp):
            self.clock = "calendar, no zone: read as UTC"
            return _epoch_s(stamp)
        if match := _TIME.fullmatch(words[0]):
            self.clock = "time of day, no date"
            hours, minutes, seconds = map(int, match.groups())
            half = {"AM": 0, "PM": 12}.get(words[1])
            at_s = (hours if half is None else hours % 12 + half) * 3600 + minutes * 60 + seconds
            while at_s < self._at_s:
                at_s += 86_400  # past midnight
            self._at_s = at_s
        elif not self._dated:
            self._rows += 1
            return self._rows
        return self._at_s


def sized(value: float, size: float) -> float:
    """A number of something in its base unit; 35 % are 0.35 to the last digit."""
    return value / round(1 / size) if size < 1 else value * size


def _source_of(cells: Mapping[str, str], first: str) -> str:
    """Whose row it is: a processor, a disk, a process or thread, else the machine."""
    if "CPU" in cells and "Command" not in cells:
        return "cpu" if cells["CPU"] == "all" else f"cpu:{cells['CPU']}"
    if first.rstrip(":") == "Device":
        return f"disk:{cells[first]}"
    if cells.get("TID", "-") != "-":
        return f"tid:{cells['TID']}"
    process = cells.get("PID", cells.get("TGID"))
    return "machine" if process is None else f"pid:{process}"


def _epoch_s(stamp: str) -> int:
    forms = ("%m/%d/%y %H:%M:%S", "%m/%d/%y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p")
    for form in (*forms, "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %I:%M:%S %p"):
        try:
            return int(datetime.strptime(stamp, form).replace(tzinfo=UTC).timestamp())
        except ValueError:
            continue
    return 0
