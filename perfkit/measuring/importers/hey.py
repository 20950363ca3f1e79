"""What does hey say, in its report or as CSV (`-o csv`)?

Both are in seconds with four decimals. The CSV has a row for each answered request in the order of their
ends; requests without an answer stand only in the report's error distribution.
"""

from __future__ import annotations

import re

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Level, Rows, Tally, Timing
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

NAME, CSV_NAME = "hey report", "hey CSV"
_CSV_COLUMNS = {"response-time", "status-code", "offset"}
_FIGURE = r"^\s*{}:\s*(\S+)(?: secs?)?\s*$"
_PERCENT = re.compile(r"^\s*(\d+(?:\.\d+)?)% in (\S+) secs", re.MULTILINE)
_COUNT = re.compile(r"^\s*\[(\d{1,15})\]\s+(\d{1,15}) responses", re.MULTILINE)
_FAILED = re.compile(r"^\s*\[(\d{1,15})\]\s+(?!\d+ responses)\S", re.MULTILINE)
_ERRORS = "Error distribution:"
_NO_NUMBER = "no number in response-time or offset"


def matches(head: str) -> bool:
    """By the headings of its parts."""
    return "Summary:" in head and "Requests/sec:" in head and "Slowest:" in head


def matches_csv(head: str) -> bool:
    """By the names of the columns."""
    return set(headings(head)) >= _CSV_COLUMNS


def read(source: Source) -> Imported:
    """The report as one level. Where the status table is missing, counts and errors are unknown."""
    text = source.whole()
    answered = sum(int(count) for _, count in _COUNT.findall(text))
    bad = sum(int(count) for status, count in _COUNT.findall(text) if int(status) >= 400)
    unanswered = sum(map(int, _FAILED.findall(text.partition(_ERRORS)[2])))
    is_whole = "Status code distribution:" in text
    found = {float(p) / 100: number(seconds) for p, seconds in _PERCENT.findall(text) if 0 < float(p) < 100}
    percentiles = {p: seconds for p, seconds in found.items() if seconds is not None}
    has_answers = answered > 0 or not is_whole
    notes = [*source.notes]
    if not is_whole:
        notes.append("the report is cut before its status table: requests and errors are unknown")
    if unanswered:
        notes.append(f"{unanswered} requests had no answer; the latencies leave them out")
    level = Level(
        name="run",
        loop="closed",
        requests=answered + unanswered if is_whole else None,
        errors=bad + unanswered if is_whole else None,
        timeouts=unanswered if is_whole else None,
        duration_s=_figure(text, "Total"),
        throughput_rps=_figure(text, "Requests/sec") if has_answers else 0.0,
        mean_s=_figure(text, "Average") if has_answers else None,
        min_s=_figure(text, "Fastest") if has_answers else None,
        max_s=_figure(text, "Slowest") if has_answers else None,
        percentiles_s=percentiles,
    )
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="s", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=tuple(notes),
    )


def read_csv(source: Source) -> Imported:
    """Every answered request."""
    tally, log, opened = Tally(), RequestLog(), 0
    table = Table(source, tally)
    at = {name: table.columns.index(name) for name in _CSV_COLUMNS}
    dial = table.index("DNS+dialup")
    for row in table.rows():
        latency, offset = number(row[at["response-time"]]), number(row[at["offset"]])
        is_error = not row[at["status-code"]].strip().startswith(("2", "3"))
        try:
            if latency is None or offset is None:
                raise ValueError("no number")
            log.add(round(offset * NS_PER_S), round(latency * NS_PER_S), is_error, "")
        except (ValueError, OverflowError):
            tally.dropped[_NO_NUMBER] += 1
            continue
        opened += dial is not None and (number(row[dial]) or 0) > 0
    tally.kept = len(log)
    return Imported(
        path=str(source.path),
        format=CSV_NAME,
        rows=tally.rows(),
        timing=Timing(unit="s", clock="seconds since the start of the run", scope="request", basis="sent"),
        levels=log.levels(loop="closed", new_connections=None if dial is None else opened) if len(log) else (),
        requests=log.requests(),
        notes=(*source.notes, "requests without an answer are not in hey's CSV"),
    )


def _figure(text: str, name: str) -> float | None:
    match = re.search(_FIGURE.format(name), text, re.MULTILINE)
    return number(match[1]) if match else None
