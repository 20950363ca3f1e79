"""What do reports of wrk and wrk2 say? There may be several in one file.

Every figure carries its own unit. `N requests` counts error replies too; requests that never got an
answer are counted nowhere, and time-outs are not in the latencies. wrk is a closed loop without think
time; wrk2 (`-R`) sends at a rate and counts from the schedule.
"""

from __future__ import annotations

import re

from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME, NAME_2 = "wrk report", "wrk2 report"
_START = re.compile(r"^Running \S+ (?:test|.*) @ ", re.MULTILINE)
_CONNECTIONS = re.compile(r"(\d{1,15}) threads and (\d{1,15}) connections")
_LATENCY = re.compile(r"^\s*Latency[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)
_PERCENT = re.compile(r"^\s*(\d+(?:\.\d+)?)%\s+(\S+)\s*$", re.MULTILINE)
_DONE = re.compile(r"(\d{1,15}) requests in (\S+),")
_RATE = re.compile(r"Requests/sec:\s*(\S+)")
_BAD = re.compile(r"Non-2xx or 3xx responses:\s*(\d{1,15})")
_SOCKET = re.compile(r"Socket errors: connect (\d{1,15}), read (\d{1,15}), write (\d{1,15}), timeout (\d{1,15})")
_WRK2 = re.compile(r"Detailed Percentile spectrum|\(HdrHistogram|Thread calibration|\d+\.\d{3}%")
_CORRECTED = "wrk adds made-up latencies where one exceeds the expected interval: mean and tail may be too high"
CUT = "report without its end (no count of requests)"


def matches(head: str) -> bool:
    """By the line that a report begins with, or the one that it ends with."""
    return "Thread Stats" in head or (bool(_START.search(head)) and bool(_CONNECTIONS.search(head)))


def read(source: Source) -> Imported:
    """One level a report."""
    text = source.whole()
    starts = [match.start() for match in _START.finditer(text)] or [0]
    reports = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    tally = Tally()
    is_open = bool(_WRK2.search(text))
    levels = []
    for index, report in enumerate(reports, 1):
        level = _level(f"run {index}" if len(reports) > 1 else "run", report, is_open)
        if level.requests is None:
            tally.dropped[CUT] += 1
            source.notes.append(f"{level.name}: {CUT}: rate and errors are unknown")
        else:
            tally.kept += 1
        levels.append(level)
    return Imported(
        path=str(source.path),
        format=NAME_2 if is_open else NAME,
        rows=tally.rows(),
        timing=Timing(unit="as printed", clock="none", scope="cumulative", basis="scheduled" if is_open else "sent"),
        levels=tuple(levels),
        is_range=len(levels) > 1,
        notes=(*source.notes, *(() if is_open else (_CORRECTED,))),
    )


def _level(name: str, text: str, is_open: bool) -> Level:
    connections, done = _CONNECTIONS.search(text), _DONE.search(text)
    latency, socket, bad, rate = (one.search(text) for one in (_LATENCY, _SOCKET, _BAD, _RATE))
    failed = sum(map(int, socket.groups()[:3])) if socket else 0
    errors = (int(bad[1]) if bad else 0) + failed + (int(socket[4]) if socket else 0)
    answered = int(done[1]) if done else None
    return Level(
        name=name,
        loop="open" if is_open else "closed",
        has_think_time=None if is_open else False,
        concurrency=float(connections[2]) if connections else None,
        requests=answered,
        errors=None if answered is None else errors,
        timeouts=int(socket[4]) if socket else None if answered is None else 0,
        duration_s=duration_s(done[2]) if done else None,
        throughput_rps=number(rate[1]) if rate else None,
        mean_s=duration_s(latency[1]) if latency else None,
        max_s=_most_s(text, latency[3] if latency else ""),
        percentiles_s=_percentiles(text),
    )


def _percentiles(text: str) -> dict[float, float]:
    found = {round(float(p) / 100, 8): duration_s(value) for p, value in _PERCENT.findall(text)}
    return {p: value for p, value in found.items() if value is not None and p < 1}


def _most_s(text: str, printed: str) -> float | None:
    """The largest latency; a patched wrk prints a percentage there, and wrk2 ends its spectrum with it."""
    values = [duration_s(value) for p, value in _PERCENT.findall(text) if float(p) == 100]
    return duration_s(printed) if printed and "%" not in printed else next(iter(values), None)
