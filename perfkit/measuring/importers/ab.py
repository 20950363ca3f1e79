"""What does ApacheBench say: its report, its percentile table (`-e`), its list of requests (`-g`)?

Milliseconds. `Failed requests` counts replies of another length too, which are no errors; non-2xx replies
stand apart. `Time per request` is concurrency / rate and no measurement, so the mean is taken from the
connection times. The list of requests is sorted by latency: where it is cut, the slowest are missing.
"""

from __future__ import annotations

import re
from typing import Any

from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, first_line, headings
from perfkit.measuring.importers.imported import Imported, Level, Rows, Tally, Timing
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME, PERCENTILES_NAME, REQUESTS_NAME = "ab report", "ab percentile CSV", "ab request list"
_PERCENT = re.compile(r"^\s*(\d{1,15})%\s+(\d{1,15})\b", re.MULTILINE)
_PERCENT_COLUMNS = ["Percentage served", "Time in ms"]
_REQUEST_COLUMNS = ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]
_NO_NUMBER = "no number in its cells"


def matches(head: str) -> bool:
    """By the name that the report begins with."""
    return "This is ApacheBench" in head


def matches_percentiles(head: str) -> bool:
    """By the names of the columns."""
    return headings(head) == _PERCENT_COLUMNS


def matches_requests(head: str) -> bool:
    """By the names of the columns."""
    return first_line(head).split("\t") == _REQUEST_COLUMNS


def read(source: Source) -> Imported:
    """The report as one level; raises ConfigError where it has no result."""
    text = source.whole()
    complete = _figure(text, "Complete requests")
    if complete is None:
        raise ConfigError(f"{source.path}: an ab report without a result (it was stopped or found no server)")
    times = {int(p): int(ms) / 1e3 for p, ms in _PERCENT.findall(text)}
    failed, bad = _figure(text, "Failed requests"), _figure(text, "Non-2xx responses")
    mean = re.search(r"^Total:\s+\d+\s+(\d{1,15})", text, re.MULTILINE)
    level = Level(
        name="run",
        loop="closed",
        has_think_time=False,
        concurrency=_figure(text, "Concurrency Level"),
        requests=int(complete),
        errors=int(bad or 0) + _unanswered(text),
        duration_s=_figure(text, "Time taken for tests"),
        throughput_rps=_figure(text, "Requests per second"),
        mean_s=int(mean[1]) / 1e3 if mean else None,
        max_s=times.get(100),
        percentiles_s={p / 100: value for p, value in times.items() if p < 100},
    )
    notes = [*source.notes, "whole milliseconds"]
    if (failed or 0) > (bad or 0) + _unanswered(text):
        notes.append(f"{failed:g} “failed” requests: replies of another length than the first count as that, too")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="ms", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=tuple(notes),
    )


def read_percentiles(source: Source) -> Imported:
    """The percentiles of one run; counts and rates are not in the file."""
    tally, found = Tally(), {}
    for row in Table(source, tally).rows():
        p, ms = number(row[0]), number(row[1])
        if p is None or ms is None or not 0 <= p <= 100:
            tally.dropped[_NO_NUMBER] += 1
            continue
        found[round(p / 100, 6)] = ms / 1e3
        tally.kept += 1
    inner = {p: value for p, value in found.items() if 0 < p < 1}
    level = Level(name="run", min_s=found.get(0.0), max_s=found.get(1.0), percentiles_s=inner)
    return Imported(
        path=str(source.path),
        format=PERCENTILES_NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="none", scope="cumulative", basis="sent"),
        levels=(level,) if tally.kept else (),
        notes=(*source.notes, "requests, errors and rate are not in this file"),
    )


def read_requests(source: Source) -> Imported:
    """Every request. Of a cut list no percentile is taken."""
    tally, log = Tally(), RequestLog(resolution_ns=NS_PER_S)
    for row in Table(source, tally).rows():
        try:
            log.add(int(row[1]) * NS_PER_S, int(row[4]) * 1_000_000, False, "")
        except ValueError:
            tally.dropped[_NO_NUMBER] += 1
    tally.kept = len(log)
    is_cut = bool(tally.dropped)
    known: dict[str, Any] = {"errors": None, "quantiles": {}, "grade": None, "reasons": ()}  # their order tells no time
    if is_cut:
        known |= {"percentiles_s": {}, "max_s": None, "mean_s": None, "good_mean_s": None}
    notes = [*source.notes, "sorted by latency, start in whole seconds; errors are not in this file"]
    if is_cut:
        notes.append("the list is cut: the slowest requests are missing, so no mean or percentile is taken from it")
    return Imported(
        path=str(source.path),
        format=REQUESTS_NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="epoch, whole seconds", scope="request", basis="sent"),
        levels=log.levels(**known) if len(log) else (),
        requests=log.requests(),
        notes=tuple(notes),
    )


def _figure(text: str, name: str) -> float | None:
    match = re.search(rf"^{name}:\s+(\S+)", text, re.MULTILINE)
    return number(match[1]) if match else None


def _unanswered(text: str) -> int:
    """Failures that are no replies of another length."""
    match = re.search(r"\(Connect: (\d{1,15}), Receive: (\d{1,15}), Length: \d+, Exceptions: (\d{1,15})\)", text)
    return sum(map(int, match.groups())) if match else 0
