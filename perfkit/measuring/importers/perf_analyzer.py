"""What does Triton's perf_analyzer say in its CSV (`-f`) and on its screen?

Microseconds. The CSV has a row a load level, sorted by throughput and not by load, without counts or
errors. Parts (queue, compute, …) are averages and add up to the mean; percentiles are of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Level, Loop, Metric, Tally, Timing
from perfkit.measuring.importers.source import Source

CSV_NAME, TEXT_NAME = "perf_analyzer CSV", "perf_analyzer text"
_LOADS = {"Concurrency": "closed", "Request Rate": "open"}
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?) latency")
_PARTS = ("Client Send", "Network+Server Send/Recv", "Server Queue", "Client Recv")
_COMPUTE = ("Server Compute Input", "Server Compute Infer", "Server Compute Output")
_SPLIT = re.compile(r"(queue|compute input|compute infer|compute output) (\d{1,15}) usec")
_BATCH = re.compile(r"^\s*Batch size: (\d{1,9})", re.MULTILINE)
_NO_NUMBER = "no number in its load or throughput"
_BLOCK = re.compile(r"^Request (concurrency|rate): ([\d.]+)(?: inference requests per second)?\s*$", re.M | re.I)
_PERCENTILE_LINE = re.compile(r"^\s*p(\d+(?:\.\d+)?) latency: (\d{1,15}) usec", re.MULTILINE)
UNSTABLE = "load level without a result (the measurement did not become stable, or stopped)"
_TIMING = Timing(unit="us", clock="none", scope="cumulative", basis="sent")


def matches_csv(head: str) -> bool:
    """By the names of the columns."""
    names = set(headings(head))
    return "Inferences/Second" in names and bool(names & set(_LOADS))


def matches_text(head: str) -> bool:
    """By the heading of its settings."""
    return "*** Measurement Settings ***" in head


def read_csv(source: Source) -> Imported:
    """One level a row."""
    tally, levels = Tally(), []
    metrics: list[Metric] = []
    table = Table(source, tally)
    for index, row in enumerate(table.rows(), 1):
        cells = dict(zip(table.columns, row, strict=True))
        load = next(name for name in _LOADS if name in cells)
        value, rate = number(cells[load]), number(cells["Inferences/Second"])
        if value is None or rate is None:
            tally.dropped[_NO_NUMBER] += 1
            continue
        tally.kept += 1
        found = {
            round(float(m[1]) / 100, 8): number(cells[name]) for name in cells if (m := _PERCENTILE.fullmatch(name))
        }
        figures = {"throughput_rps": rate, "mean_s": _us(_mean_us(cells))}
        levels.append(_level(load, value, index, {**figures, "percentiles_s": _seconds(found)}))
        parts = {name: number(cells[name]) for name in (*_PARTS, *_COMPUTE) if name in cells}
        metrics += _parts(f"{load.lower()} {value:g}", parts)
    return Imported(
        path=str(source.path),
        format=CSV_NAME,
        rows=tally.rows(),
        timing=_TIMING,
        levels=tuple(levels),
        metrics=tuple(metrics),
        is_range=len(levels) > 1,
        notes=(
            *source.notes,
            "throughput counts inferences: requests only where the batch size, which the file does not tell, is 1",
            "request counts and errors are not in this file (perf_analyzer stops at the first error)",
        ),
    )


def read_text(source: Source) -> Imported:
    """One level for each load that came to a result."""
    text = source.whole()
    blocks = list(_BLOCK.finditer(text))
    tally, levels, notes = Tally(), [], [*source.notes]
    metrics: list[Metric] = []
    batches: dict[str, str] = {}
    stated = _BATCH.search(text)
    batch = int(stated[1]) if stated and int(stated[1]) else 1
    if batch > 1:
        notes.append(f"rates are requests a second: throughput / batch size {batch}")
    ends = [match.start() for match in blocks[1:]] + [len(text)]
    for match, end in zip(blocks, ends, strict=False):
        part = text[match.end() : end]
        level = _text_level(match, part, batch)
        if level is None:
            tally.dropped[UNSTABLE] += 1
        else:
            tally.kept += 1
            levels.append(level)
            if size := _server_batch(part):
                batches[level.name] = size
            metrics += _parts(level.name, {f"server {name}": float(us) for name, us in _SPLIT.findall(part)})
    return Imported(
        path=str(source.path),
        format=TEXT_NAME,
        rows=tally.rows(),
        timing=_TIMING,
        levels=tuple(levels),
        metrics=tuple(metrics),
        is_range=len(levels) > 1,
        notes=(*notes, *_batch_notes(batches)),
    )


def _text_level(match: re.Match[str], text: str, batch: int) -> Level | None:
    count, rate = _figure(text, r"Request count: (\d{1,15})"), _figure(text, r"Throughput: (\S+) infer/sec")
    if count is None or rate is None:
        return None
    load = "Concurrency" if match[1].lower() == "concurrency" else "Request Rate"
    value = float(match[2])
    found = {round(float(p) / 100, 8): float(us) for p, us in _PERCENTILE_LINE.findall(text)}
    figures = {
        "requests": int(count),
        "throughput_rps": rate / batch,
        "mean_s": _us(_figure(text, r"Avg (?:latency|HTTP time|gRPC time): (\d{1,15}) usec")),
        "percentiles_s": _seconds(found),
    }
    return _level(load, value, None, figures)


def _server_batch(text: str) -> str:
    """Inferences an execution; empty where the server did not count both."""
    executed, inferred = _figure(text, r"Execution count: (\d{1,15})"), _figure(text, r"Inference count: (\d{1,15})")
    return f"{inferred / executed:.3g}" if executed and inferred else ""


def _batch_notes(batches: Mapping[str, str]) -> list[str]:
    """One a load, or one for all where they agree."""
    if len(batches) > 1 and len(set(batches.values())) == 1:
        return [f"every load: average batch on the server {next(iter(batches.values()))}"]
    return [f"{load}: average batch on the server {batch}" for load, batch in batches.items()]


def _level(load: str, value: float, row: int | None, figures: Mapping[str, object]) -> Level:
    loop: Loop = "closed" if load == "Concurrency" else "open"
    known = {"concurrency": value, "has_think_time": False} if loop == "closed" else {"offered_rps": value}
    return Level(name=f"{load.lower()} {value:g}", row=row, loop=loop, **known, **figures)  # type: ignore[arg-type]


def _parts(load: str, parts: Mapping[str, float | None]) -> list[Metric]:
    """Means of what a request spent where, in seconds."""
    named = {name.lower().replace("+", " ").replace("/", " ").replace(" ", "_"): us for name, us in parts.items()}
    return [
        Metric(name=f"{name}_seconds", labels={"load": load}, kind="mean", value=us / 1e6)
        for name, us in named.items()
        if us is not None
    ]


def _mean_us(cells: Mapping[str, str]) -> float | None:
    """Given, or the sum of the parts where they are all there."""
    if "Avg latency" in cells:
        return number(cells["Avg latency"])
    parts = [number(cells.get(name, "")) for name in (*_PARTS, *_COMPUTE)]
    return None if any(part is None for part in parts) else sum(part or 0.0 for part in parts)


def _seconds(found: Mapping[float, float | None]) -> dict[float, float]:
    return {p: value / 1e6 for p, value in found.items() if value is not None}


def _figure(text: str, pattern: str) -> float | None:
    match = re.search(rf"^\s*{pattern}", text, re.MULTILINE)
    return number(match[1]) if match else None


def _us(value: float | None) -> float | None:
    return None if value is None else value / 1e6
