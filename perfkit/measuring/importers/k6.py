"""What do k6's single results say, as CSV or as NDJSON?

Both have a row per metric and request: `http_req_duration` in milliseconds, stamped at the END of the
request (the CSV in whole seconds). It leaves out the time to connect. A request that never got through
has status 0 and duration 0: it counts as failed and has no latency.
"""

from __future__ import annotations

import dataclasses
import math

import orjson

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, first_line, headings
from perfkit.measuring.importers.imported import Imported, Tally, Timing
from perfkit.measuring.importers.instants import epoch_ns
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

CSV_NAME, LINES_NAME = "k6 CSV", "k6 NDJSON"
_COLUMNS = {"metric_name", "timestamp", "metric_value"}
_OTHER = "row of another metric"
_DEFINITION = "definition of a metric"
_NO_NUMBER = "no number in its value or time"
_NOT_JSON = "not a k6 point (a cut line?)"
_TELLING = {"http_req_duration", "dropped_iterations", "http_req_connecting", "vus", "vus_max"}
_CONNECTED = "latency leaves out the time to connect (http_req_duration)"


def matches_csv(head: str) -> bool:
    """By the names of the columns."""
    return set(headings(head)) >= _COLUMNS


def matches_lines(head: str) -> bool:
    """By the fields of the first line."""
    line = first_line(head)
    return line.startswith("{") and '"metric":' in line and ('"type":"Metric"' in line or '"type":"Point"' in line)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    metric: str
    end_ns: int
    value: float
    status: str
    is_error: bool
    url: str


class _Collector:
    """Sorts points into requests, and counts of what else tells something."""

    def __init__(self, resolution_ns: int = 1) -> None:
        self.log, self.tally = RequestLog(resolution_ns=resolution_ns), Tally()
        self.unsent, self.opened, self.users = 0.0, 0, 0.0

    def take(self, point: _Point) -> None:
        """One point of any metric."""
        if point.metric == "http_req_duration":
            self._request(point)
            return
        self.tally.dropped[_OTHER] += 1
        if point.metric == "dropped_iterations":
            self.unsent += point.value
        elif point.metric == "http_req_connecting":
            self.opened += point.value > 0
        elif point.metric in ("vus", "vus_max"):
            self.users = max(self.users, point.value)

    def _request(self, point: _Point) -> None:
        if point.status in ("0", "") and point.value == 0:
            self.log.add_unanswered(point.url)
            return
        try:
            latency_ns = round(point.value * 1e6)
            self.log.add(point.end_ns - latency_ns, latency_ns, point.is_error, point.url)
        except (ValueError, OverflowError):
            self.tally.dropped[_NO_NUMBER] += 1

    def imported(self, source: Source, name: str, clock: str) -> Imported:
        """Everything that was taken."""
        self.tally.kept = len(self.log)
        unsent = int(self.unsent) or None
        levels = self.log.levels(
            loop="open" if unsent else "unknown",
            unsent=unsent,
            new_connections=self.opened,
            concurrency=self.users or None,
        )
        return Imported(
            path=str(source.path),
            format=name,
            rows=self.tally.rows(),
            timing=Timing(unit="ms", clock=clock, scope="request", basis="sent"),
            levels=levels if len(self.log) else (),
            requests=self.log.requests(),
            notes=(*source.notes, _CONNECTED),
        )


def read_csv(source: Source) -> Imported:
    """Every request."""
    collector = _Collector(NS_PER_S)
    table = Table(source, collector.tally)
    at = {name: index for index, name in enumerate(table.columns) if name in _WANTED}
    metric_at, stamp_at, value_at = (at[name] for name in ("metric_name", "timestamp", "metric_value"))
    for row in table.rows():
        if row[metric_at] not in _TELLING:
            collector.tally.dropped[_OTHER] += 1
            continue
        value, end_ns = number(row[value_at]), _end_ns(row[stamp_at].strip())
        if value is None or end_ns is None:
            collector.tally.dropped[_NO_NUMBER] += 1
            continue
        tags = {name: row[index].strip() for name, index in at.items()}
        collector.take(_point(row[metric_at], end_ns, value, tags))
    return collector.imported(source, CSV_NAME, "epoch, whole seconds, at the end of a request")


def read_lines(source: Source) -> Imported:
    """Every request; definitions of metrics are counted apart."""
    collector = _Collector()
    for line in source.lines():
        if line.strip():
            _take_line(collector, line)
    return collector.imported(source, LINES_NAME, "wall clock with zone, at the end of a request")


_WANTED = {*_COLUMNS, "status", "error", "error_code", "expected_response", "name", "url"}


def _take_line(collector: _Collector, line: str) -> None:
    try:
        row = orjson.loads(line)
        if row["type"] == "Metric":
            collector.tally.dropped[_DEFINITION] += 1
            return
        data, tags = row["data"], row["data"].get("tags") or {}
        point = _point(str(row["metric"]), epoch_ns(data["time"]), float(data["value"]), tags)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        collector.tally.dropped[_NOT_JSON] += 1
        return
    if math.isfinite(point.value):
        collector.take(point)
    else:
        collector.tally.dropped[_NO_NUMBER] += 1


def _point(metric: str, end_ns: int, value: float, tags: dict[str, str]) -> _Point:
    status = str(tags.get("status", ""))
    failed = bool(tags.get("error") or tags.get("error_code")) or tags.get("expected_response") == "false"
    is_error = failed or (status != "" and not status.startswith(("2", "3")))
    url = str(tags.get("name") or tags.get("url") or "")
    return _Point(metric=metric, end_ns=end_ns, value=value, status=status, is_error=is_error, url=url)


def _end_ns(text: str) -> int | None:
    """Epoch seconds, or by K6_CSV_TIME_FORMAT milliseconds, microseconds, nanoseconds or RFC 3339."""
    if text.isdecimal() and len(text) in (10, 13, 16, 19):
        return int(text.ljust(19, "0"))
    try:
        return epoch_ns(text)
    except ValueError:
        return None
