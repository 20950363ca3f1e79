"""What do Triton Model Analyzer's CSV files say?

Milliseconds, unlike perf_analyzer's. The user chooses the columns; throughput counts inferences, of
which a request carries `Batch`. The GPU file has utilisation and memory instead of latencies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.delimited import Table, headings
from perfkit.measuring.importers.imported import Imported, Level, Metric, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "Model Analyzer CSV"
_THROUGHPUT = "Throughput (infer/sec)"
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?) Latency \(ms\)")
_MEAN = "Avg Latency (ms)"
_GPU = re.compile(r"GPU .*\((?:MB|%|W)\)")
_LABELS = ("Model", "GPU UUID", "Batch", "Concurrency", "Request Rate", "Model Config Path", "Instance Group")
_NO_NUMBER = "no number in any of its figures"


def matches(head: str) -> bool:
    """By the names of the columns."""
    names = headings(head)
    return {"Model", "Batch"} <= set(names) and any(
        name in (_THROUGHPUT, "Model Config Path") or _GPU.fullmatch(name) for name in names
    )


def read(source: Source) -> Imported:
    """One level a row with a throughput or latency, one metric a figure of a GPU."""
    tally = Tally()
    levels: list[Level] = []
    metrics: list[Metric] = []
    table = Table(source, tally)
    for index, row in enumerate(table.rows(), 1):
        cells = dict(zip(table.columns, (cell.strip() for cell in row), strict=True))
        found = _metrics(cells)
        level = _level(index, cells)
        if level is None and not found:
            tally.dropped[_NO_NUMBER] += 1
            continue
        tally.kept += 1
        metrics += found
        levels += [level] if level else []
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="none", scope="cumulative" if levels else "none", basis="sent"),
        levels=tuple(levels),
        metrics=tuple(metrics),
        is_range=len(levels) > 1,
        notes=(*source.notes, *_notes(levels, metrics)),
    )


def _notes(levels: list[Level], metrics: list[Metric]) -> list[str]:
    notes = ["rates are requests a second: Throughput (infer/sec) / Batch"] if levels else []
    idle = [metric for metric in metrics if metric.name == "GPU Utilization (%)" and metric.value == 0]
    if idle:
        notes.append(f"GPU Utilization is 0 in {len(idle)} rows: too short for its sampling, not proof of an idle GPU")
    return notes


def _level(row: int, cells: Mapping[str, str]) -> Level | None:
    rate, batch = number(cells.get(_THROUGHPUT, "")), number(cells.get("Batch", "")) or 1.0
    found = {round(float(m[1]) / 100, 8): number(cells[name]) for name in cells if (m := _PERCENTILE.fullmatch(name))}
    percentiles = {p: value / 1e3 for p, value in found.items() if value is not None}
    mean = number(cells.get(_MEAN, ""))
    if rate is None and mean is None and not percentiles:
        return None
    clients, offered = number(cells.get("Concurrency", "")), number(cells.get("Request Rate", ""))
    load = f"concurrency {clients:g}" if clients is not None else f"rate {offered:g}" if offered is not None else ""
    where = cells.get("Model Config Path") or cells["Model"]
    return Level(
        name=f"{where}, batch {batch:g}, {load}".rstrip(", "),
        row=row,
        loop="open" if offered is not None else "closed",
        concurrency=clients,
        offered_rps=offered,
        throughput_rps=None if rate is None else rate / batch,
        mean_s=None if mean is None else mean / 1e3,
        percentiles_s=percentiles,
    )


def _metrics(cells: Mapping[str, str]) -> list[Metric]:
    labels = {name: cells[name] for name in _LABELS if name in cells}
    values = {name: number(text) for name, text in cells.items() if _GPU.fullmatch(name)}
    return [
        Metric(name=name, labels=labels, kind="gauge", value=value)
        for name, value in values.items()
        if value is not None
    ]
