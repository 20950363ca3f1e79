"""What does a results table as an article prints it say (concurrency, mean, P99, throughput)?

Headings are taken in any usual spelling, English or Chinese, with the unit in the heading or in the
cells. A latency without a unit gets the one that makes rate × latency agree with the concurrency in
most rows; where nothing tells the unit the table is refused.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

from perfkit.errors import ConfigError
from perfkit.measuring.importers.cells import SECONDS, decimal_mark, duration_s, number
from perfkit.measuring.importers.delimited import headings, plain_rows
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "results table"
_LATENCY = ("mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", "min")
# In this order: the first pattern that a heading matches decides.
_PATTERNS = (
    ("ignored", r"byte|\bk?m?g?i?b\b|gpu|cpu|memory|std|利用率|显存|内存"),
    ("p99.9", r"\bp? ?99[.,]9|\bp ?999\b"),
    *((f"p{p}", rf"\bp ?{p}\b|\b{p}(?: ?th| ?%| ?p\b| ?分位)") for p in (99, 95, 90, 75)),
    ("p50", r"\bp ?50\b|\b50(?: ?th| ?%| ?p\b| ?分位)|\bmed(?:ian)?\b|中位"),
    ("throughput", r"throughput|\bqps\b|\brps\b|\btps\b|/ ?s(?:ec|econd)?\b|per sec|吞吐|\bops\b"),
    ("max", r"\bmax|\bslowest|最大|最慢"),
    ("min", r"\bmin(?:imum)?\b|\bfastest|最小|最快"),
    ("error_ratio", r"(?:error|fail\w*|错误|失败) ?(?:rate|ratio|%|率)"),
    ("errors", r"\berrors?\b|\bfail(?:ed|ures?)?\b|错误|失败"),
    ("ignored", r"success|成功|time ?outs?\b|超时|conflict|note|备注"),
    (
        "concurrency",
        r"concurren|\bconc\b|\bparallel|\bclients?\b|\busers?\b|\bvus?\b|\bthreads?\b|\bconnections?\b|\bworkers?\b"
        r"|^[nc]$|并发|线程|用户",
    ),
    ("mean", r"\bmean\b|\bavg\b|\baverage\b|平均|latency|response time|time per request|\brt\b|延迟|响应|耗时"),
    ("requests", r"\brequests?\b|\bsamples?\b|\bcount\b|请求数"),
    ("duration", r"\bduration\b|\btime\b|时长"),
)
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[\u4e00-\u9fff])(?=[!-~])|(?<=[!-~])(?=[\u4e00-\u9fff])")
_OFFERED = re.compile(r"\b(?:offered|target|request rate|arrival)")
_UNIT_IN_HEADING = re.compile(
    r"(?<![a-z])(ns|us|µs|μs|usec|ms|msec|millis\w*|s|sec|secs|seconds|min)(?![a-z])|[纳微毫]?秒"
)
_SLOW_RATES = {"min": 60, "h": 3600}
_CANDIDATES = ("s", "ms", "us")
_CLOSE = 0.25  # judgement: a unit fits where the median of rate × latency / concurrency is within this of 1


def matches(head: str) -> bool:
    """Whether the heading names a latency or a rate beside something else that is known."""
    known = set(_fields(_split(head)).values())
    return (
        len(known) >= 2
        and bool(known & {*_LATENCY, "throughput"})
        and bool(known & {"concurrency", "offered", "throughput"})
    )


def read(source: Source) -> Imported:
    """Every row as a level; rows without a figure are dropped."""
    tally = Tally()
    rows = plain_rows(source)
    heading = next(rows, [])
    fields = _fields(heading)
    table = [(index, row) for index, row in enumerate(rows, 1) if _is_whole(row, heading, tally)]
    decimal = decimal_mark(cell for _, row in table for column, cell in enumerate(row) if column in fields)
    units = {name: unit for column, name in fields.items() if (unit := unit_of(heading[column]))}
    if {"# Samples", "90% Line"} <= set(heading):
        units = dict.fromkeys(_LATENCY, "ms") | units  # JMeter's aggregate report
    notes = list(source.notes)
    if "," in "".join(cell for _, row in table for cell in row) and decimal == ",":
        notes.append("numbers have a decimal comma")
    assumed = _unit_without_word(table, fields, units, decimal, notes)
    levels = []
    for index, row in table:
        level = _level(index, {name: row[column] for column, name in fields.items()}, {**assumed, **units}, decimal)
        if level is None:
            tally.dropped["no figure in it"] += 1
        else:
            levels.append(level)
            tally.kept += 1
    named = sorted(
        {units.get(name, assumed.get(name, "as in the cells")) for name in fields.values() if name in _LATENCY}
    )
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit=", ".join(named) or "none", clock="none", scope="cumulative", basis="unknown"),
        levels=tuple(levels),
        is_range=True,
        notes=tuple(notes),
    )


def _split(head: str) -> list[str]:
    lines = [line for line in head.splitlines() if line.strip()]
    if lines and "|" in lines[0]:
        return [cell.strip() for cell in lines[0].strip().strip("|").split("|")]
    cells = headings(head)
    return cells if len(cells) > 1 or not lines else re.split(r"\s{2,}|\t", lines[0].strip())


def _fields(heading: Sequence[str]) -> dict[int, str]:
    """Column -> what it holds; the first column of a kind counts."""
    found: dict[int, str] = {}
    for column, text in enumerate(heading):
        name = _field_of(text)
        if name and name not in found.values():
            found[column] = name
    return found


def _field_of(text: str) -> str | None:
    words = _words(text)
    name = next((name for name, pattern in _PATTERNS if re.search(pattern, words)), None)
    if name in ("throughput", "concurrency", "mean", "requests", None) and _OFFERED.search(words):
        return "offered"
    return None if name == "ignored" else name


def _words(text: str) -> str:
    """`P99LatencyMs` -> `p99 latency ms`."""
    spaced = _SEAM.sub(" ", text)
    return re.sub(r"[_()\[\]（）\s-]+", " ", spaced).strip().lower()


def unit_of(text: str) -> str | None:
    """The unit of time that a heading names; None where it names none."""
    words = re.sub(r"/ ?s\w*|per sec\w*", " ", _words(text))
    match = _UNIT_IN_HEADING.search(words)
    name = match[0] if match else None
    return "ms" if name and name.startswith("milli") else name


def _is_whole(row: list[str], heading: list[str], tally: Tally) -> bool:
    if len(row) == len(heading):
        return True
    tally.dropped["another number of cells than the heading"] += 1
    return False


def _unit_without_word(
    table: Sequence[tuple[int, list[str]]],
    fields: Mapping[int, str],
    units: Mapping[str, str],
    decimal: str,
    notes: list[str],
) -> dict[str, str]:
    """The unit of latencies that name none, by Little's law; {} when all name one."""
    bare = [
        name
        for column, name in fields.items()
        if name in _LATENCY
        and name not in units
        and any(duration_s(row[column], None, decimal) is None for _, row in table)
    ]
    if not bare or not table:
        return {}
    told = {units[name] for name in _LATENCY if name in units}
    if len(told) == 1:
        unit = told.pop()
        notes.append(f"{', '.join(bare)}: no unit given; read as {unit} like the other latencies")
    else:
        unit = _unit_by_little(table, fields, decimal)
        notes.append(
            f"{', '.join(bare)}: no unit given; read as {unit}, with which rate × latency agrees with the concurrency"
        )
    return dict.fromkeys(bare, unit)


def _unit_by_little(table: Sequence[tuple[int, list[str]]], fields: Mapping[int, str], decimal: str) -> str:
    column = {name: index for index, name in fields.items()}
    latency = column.get("mean", column.get("p50"))
    if latency is not None and "concurrency" in column and "throughput" in column:
        figures = [
            [number(row[one], decimal) for one in (latency, column["throughput"], column["concurrency"])]
            for _, row in table
        ]
        ratios = [mean * rate / n for mean, rate, n in figures if mean and rate and n]
        for unit in _CANDIDATES if ratios else ():
            if abs(statistics.median(ratios) * SECONDS[unit] - 1) <= _CLOSE:
                return unit
    raise ConfigError(
        "no unit stands beside the latencies, and none follows from rate × latency; "
        "write it into the heading, as in `mean (ms)`"
    )


def _level(row: int, cells: Mapping[str, str], units: Mapping[str, str], decimal: str) -> Level | None:
    times = {name: duration_s(cells[name], units.get(name), decimal) for name in _LATENCY if name in cells}
    plain = {name: number(text, decimal) for name, text in cells.items() if name not in times}
    figures = (*times.values(), plain.get("throughput"))
    if not any(value is not None for value in figures) or any((value or 0) < 0 for value in figures):
        return None
    plain["throughput"] = _per_second(plain.get("throughput"), cells.get("throughput", ""))
    concurrency, requests = plain.get("concurrency"), _count(plain.get("requests"))
    ratio, errors = plain.get("error_ratio"), _count(plain.get("errors"))
    if errors is None and ratio is not None and requests is not None:
        errors = round(requests * (ratio / 100 if "%" in cells["error_ratio"] or ratio > 1 else ratio))
    return Level(
        name=f"row {row}" if concurrency is None else f"concurrency {concurrency:g}",
        row=row,
        loop="open" if plain.get("offered") is not None else "closed" if concurrency is not None else "unknown",
        concurrency=concurrency,
        offered_rps=plain.get("offered"),
        throughput_rps=plain.get("throughput"),
        requests=requests,
        errors=errors,
        duration_s=duration_s(cells.get("duration", ""), units.get("duration", "s"), decimal),
        mean_s=times.get("mean"),
        min_s=times.get("min"),
        max_s=times.get("max"),
        percentiles_s={
            round(float(name[1:]) / 100, 6): value
            for name, value in times.items()
            if name[0] == "p" and value is not None
        },
    )


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)


def _per_second(rate: float | None, text: str) -> float | None:
    """JMeter's reports write slow rates per minute or per hour."""
    seconds = next((value for unit, value in _SLOW_RATES.items() if re.search(rf"/ ?{unit}", text)), 1)
    return None if rate is None else rate / seconds
