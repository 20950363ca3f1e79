"""What does h2load say, in its report and its log of requests (`--log-file`)?

The report has no percentiles, and each value its own unit. The log has epoch microseconds, status and
microseconds for each request, in the order of their ends and without a heading.
"""

from __future__ import annotations

import re

from perfkit.errors import ConfigError
from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.delimited import Table, first_line
from perfkit.measuring.importers.imported import Imported, Level, Rows, Tally, Timing
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME, LOG_NAME = "h2load report", "h2load request log"
_LOG_ROW = re.compile(r"1\d{15}\t-?\d{1,3}\t\d+")
_FINISHED = re.compile(r"^finished in (\S+), (\S+) req/s", re.MULTILINE)
_NUMBER = r"(\d{1,15})"
_KINDS = ("total", "started", "done", "succeeded", "failed")
_COUNTS = re.compile("^requests: " + ", ".join(f"{_NUMBER} {kind}" for kind in _KINDS), re.MULTILINE)
_TIMEOUTS = re.compile(r"(\d{1,15}) timeout")
_TIMES = re.compile(r"^time for request:\s+(\S+)\s+(\S+)\s+(\S+)", re.MULTILINE)
_CLIENTS = re.compile(r"(\d{1,15}) total client\(s\)")
_STREAMS = re.compile(r"^Application protocol: h2", re.MULTILINE)  # a client may have several requests in flight
_NO_NUMBER = "no number in its cells"


def matches(head: str) -> bool:
    """By its first line, or the table of its result."""
    return head.startswith("starting benchmark...") or ("finished in" in head and "time for request:" in head)


def matches_log(head: str) -> bool:
    """By a first row of epoch microseconds, status and microseconds."""
    return bool(_LOG_ROW.fullmatch(first_line(head)))


def read(source: Source) -> Imported:
    """One level; raises ConfigError where there is no result."""
    text = source.whole()
    finished, counts, times = (one.search(text) for one in (_FINISHED, _COUNTS, _TIMES))
    if finished is None or counts is None:
        raise ConfigError(f"{source.path}: an h2load report without a result (it was stopped before its end)")
    total, _, done, _, failed = map(int, counts.groups())
    least, most, mean = (duration_s(text) for text in times.groups()) if times and done else (None, None, None)
    timeouts = _TIMEOUTS.search(text, counts.start())
    level = Level(
        name="run",
        loop="closed",
        concurrency=None if _STREAMS.search(text) else float(sum(map(int, _CLIENTS.findall(text)))) or None,
        requests=total,
        errors=failed,
        timeouts=int(timeouts[1]) if timeouts else None,
        throughput_rps=number(finished[2]),
        mean_s=mean,
        min_s=least,
        max_s=most,
    )
    notes = [*source.notes, "percentiles are not in this file"]
    if not done:
        notes.append("no request was done: the zeros are no latencies")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="as printed", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=tuple(notes),
    )


def read_log(source: Source) -> Imported:
    """Every request."""
    tally, log = Tally(), RequestLog()
    for row in Table(source, tally, ["start", "status", "elapsed"]).rows():
        try:
            status = int(row[1])
            log.add(int(row[0]) * 1000, int(row[2]) * 1000, not 200 <= status < 400, "")
        except ValueError:
            tally.dropped[_NO_NUMBER] += 1
    tally.kept = len(log)
    return Imported(
        path=str(source.path),
        format=LOG_NAME,
        rows=tally.rows(),
        timing=Timing(unit="us", clock="epoch, at the send", scope="request", basis="sent"),
        levels=log.levels(loop="closed") if len(log) else (),
        requests=log.requests(),
        notes=tuple(source.notes),
    )
