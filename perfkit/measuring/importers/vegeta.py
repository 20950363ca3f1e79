"""What does vegeta say: single results (JSON lines or CSV), a JSON report, or text reports?

Times are nanoseconds in JSON and CSV and Go durations in text. A latency counts from the actual send; a
request that hit the time-out has code 0 and the time-out as its latency. The CSV has no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from perfkit.clock import NS_PER_S
from perfkit.measuring.importers.cells import duration_s, number
from perfkit.measuring.importers.delimited import Table, first_line
from perfkit.measuring.importers.document import count, figure, load_object, part
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.instants import epoch_ns
from perfkit.measuring.importers.requests import RequestLog
from perfkit.measuring.importers.source import Source

LINES_NAME, CSV_NAME, JSON_NAME, TEXT_NAME = (
    "vegeta JSON lines",
    "vegeta CSV",
    "vegeta JSON report",
    "vegeta text report",
)
_CSV_ROW = re.compile(r"1\d{18},\d{1,3},\d+,\d+,\d+,")
_COLUMNS = ["timestamp", "code", "latency", "bytes_out", "bytes_in", "error"]
_MORE_COLUMNS = ["body", "attack", "seq", "method", "url", "headers"]
_STATUS = re.compile(r"(\d{1,3}):(\d{1,15})")
_REPORT = re.compile(r"^Requests\s+\[total, rate", re.MULTILINE)
_NOT_JSON = "not a JSON object with timestamp, code and latency"
_NO_NUMBER = "no number in timestamp, code or latency"
_REQUESTS = Timing(unit="ns", clock="epoch, at the send", scope="request", basis="sent")


def matches_lines(head: str) -> bool:
    """By the fields of the first line."""
    line = first_line(head)
    return line.startswith("{") and all(f'"{name}":' in line for name in ("attack", "seq", "latency", "timestamp"))


def matches_csv(head: str) -> bool:
    """By a first row of epoch nanoseconds, code, nanoseconds, bytes out and in."""
    return bool(_CSV_ROW.match(first_line(head)))


def matches_json(head: str) -> bool:
    """By the fields of the report."""
    return head.lstrip().startswith("{") and '"latencies"' in head and '"status_codes"' in head


def matches_text(head: str) -> bool:
    """By the line that a report begins with."""
    return bool(_REPORT.search(head)) and "Latencies" in head


def read_lines(source: Source) -> Imported:
    """Every request."""
    tally, log = Tally(), RequestLog()
    for line in source.lines():
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            start_ns, latency_ns, code = epoch_ns(row["timestamp"]), int(row["latency"]), int(row["code"])
            log.add(start_ns, latency_ns, _is_error(code, row.get("error")), str(row.get("attack") or ""))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, OverflowError):
            tally.dropped[_NOT_JSON] += 1
    return _of_requests(source, LINES_NAME, tally, log)


def read_csv(source: Source) -> Imported:
    """Every request; old files have 6 columns, newer ones 12."""
    tally, log = Tally(), RequestLog()
    width = first_line(source.head).count(",") + 1
    table = Table(source, tally, _COLUMNS if width < 12 else _COLUMNS + _MORE_COLUMNS)
    for row in table.rows():
        try:
            attack = row[7] if len(row) > 7 else ""
            log.add(int(row[0]), int(row[2]), _is_error(int(row[1]), row[5]), attack)
        except (ValueError, OverflowError):
            tally.dropped[_NO_NUMBER] += 1
    return _of_requests(source, CSV_NAME, tally, log)


def read_json(source: Source) -> Imported:
    """One report."""
    tally = Tally()
    report = load_object(source, "a vegeta report")
    latencies, codes = part(report, "latencies"), part(report, "status_codes")
    lasted = [value for name in ("duration", "wait") if (value := figure(report, name, NS_PER_S)) is not None]
    level = Level(
        name="run",
        loop="open",
        requests=count(report, "requests"),
        errors=_failed((code, count(codes, code)) for code in codes) if codes else None,
        duration_s=sum(lasted) or None,
        offered_rps=figure(report, "rate"),
        throughput_rps=figure(report, "throughput"),
        mean_s=figure(latencies, "mean", NS_PER_S),
        min_s=figure(latencies, "min", NS_PER_S),
        max_s=figure(latencies, "max", NS_PER_S),
        percentiles_s=_percentiles(latencies),
    )
    tally.kept = 1
    return _of_reports(source, JSON_NAME, tally, [level])


def read_text(source: Source) -> Imported:
    """One level a report; there may be several in one file."""
    text = source.whole()
    starts = [match.start() for match in _REPORT.finditer(text)]
    tally, levels = Tally(), []
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        level = _text_level(f"run {index}" if len(starts) > 1 else "run", text[start:end])
        if level is None:
            tally.dropped["report without its latencies"] += 1
        else:
            levels.append(level)
            tally.kept += 1
    return _of_reports(source, TEXT_NAME, tally, levels)


def _of_requests(source: Source, name: str, tally: Tally, log: RequestLog) -> Imported:
    tally.kept = len(log)
    return Imported(
        path=str(source.path),
        format=name,
        rows=tally.rows(),
        timing=_REQUESTS,
        levels=log.levels(loop="open") if len(log) else (),
        requests=log.requests(),
        notes=tuple(source.notes),
    )


def _of_reports(source: Source, name: str, tally: Tally, levels: list[Level]) -> Imported:
    unit = "ns" if name == JSON_NAME else "as printed"
    return Imported(
        path=str(source.path),
        format=name,
        rows=tally.rows(),
        timing=Timing(unit=unit, clock="none", scope="cumulative", basis="sent"),
        levels=tuple(levels),
        notes=tuple(source.notes),
    )


def _text_level(name: str, text: str) -> Level | None:
    requests, times, lasted = (_fields(text, word) for word in ("Requests", "Latencies", "Duration"))
    if "mean" not in times or "total" not in requests:
        return None
    total = number(requests["total"])
    codes = _STATUS.findall(_line(text, "Status Codes"))
    latencies = {key: duration_s(value) for key, value in times.items()}
    return Level(
        name=name,
        loop="open",
        requests=None if total is None else int(total),
        errors=_failed((code, int(many)) for code, many in codes) if codes else None,
        duration_s=duration_s(lasted.get("total", "")),
        offered_rps=number(requests.get("rate", "")),
        throughput_rps=number(requests.get("throughput", "")),
        mean_s=latencies.get("mean"),
        min_s=latencies.get("min"),
        max_s=latencies.get("max"),
        percentiles_s={
            int(key) / 100: value
            for key, value in latencies.items()
            if key.isdecimal() and len(key) == 2 and value is not None
        },
    )


def _fields(text: str, word: str) -> dict[str, str]:
    """`Latencies  [min, mean]  1ms, 2ms` -> {"min": "1ms", "mean": "2ms"}; older reports have fewer fields."""
    match = re.search(rf"^{word}\s+\[([^\]]*)\]\s+(.*)$", text, re.MULTILINE)
    if not match:
        return {}
    names, values = match[1].split(", "), match[2].strip().split(", ")
    return dict(zip(names, values, strict=False))


def _percentiles(latencies: Mapping[str, Any]) -> dict[float, float]:
    found = {
        int(name[:2]) / 100: figure(latencies, name, NS_PER_S) for name in latencies if re.fullmatch(r"\d\dth", name)
    }
    return {p: value for p, value in found.items() if value is not None}


def _is_error(code: int, error: object) -> bool:
    return bool(error) or not 200 <= code < 400


def _failed(codes: Iterable[tuple[str, int | None]]) -> int:
    """Replies that are neither 2xx nor 3xx; code 0 had none."""
    return sum(many or 0 for code, many in codes if not code.startswith(("2", "3")))


def _line(text: str, word: str) -> str:
    match = re.search(rf"^{word}\s+\[[^\]]*\]\s+(.*)$", text, re.MULTILINE)
    return match[1] if match else ""
