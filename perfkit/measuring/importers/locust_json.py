"""What does Locust's JSON on stdout say (`--json`)?

One entry a request name; `response_times` is a histogram of rounded milliseconds, so percentiles are
rounded too. Failed requests are in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfkit.measuring.importers.document import as_figure, count, figure, load, part
from perfkit.measuring.importers.imported import Imported, Level, Tally, Timing
from perfkit.measuring.importers.requests import QUANTILES
from perfkit.measuring.importers.source import Source

NAME = "Locust JSON"
_NO_REQUEST = "entry without a request"


def matches(head: str) -> bool:
    """By the fields of an entry."""
    return head.lstrip().startswith("[") and '"num_requests"' in head and '"total_response_time"' in head


def read(source: Source) -> Imported:
    """One level an entry."""
    tally, levels = Tally(), []
    entries = load(source, "a Locust result")
    for entry in entries if isinstance(entries, list) else []:
        requests = count(entry, "num_requests")
        if not requests:
            tally.dropped[_NO_REQUEST] += 1
            continue
        tally.kept += 1
        levels.append(_level(entry, requests))
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="ms", clock="epoch seconds", scope="cumulative", basis="sent"),
        levels=tuple(levels),
        notes=(*source.notes, "percentiles are rounded to two significant digits by Locust"),
    )


def _level(entry: Mapping[str, object], requests: int) -> Level:
    first, last = figure(entry, "start_time"), figure(entry, "last_request_timestamp")
    seconds = last - first if first is not None and last is not None and last > first else None
    total_s = figure(entry, "total_response_time", 1e3)
    return Level(
        name=f"{entry.get('method', '')} {entry.get('name', '')}".strip(),
        loop="closed",
        requests=requests,
        errors=count(entry, "num_failures"),
        duration_s=seconds,
        throughput_rps=requests / seconds if seconds else None,
        mean_s=None if total_s is None else total_s / requests,
        min_s=figure(entry, "min_response_time", 1e3),
        max_s=figure(entry, "max_response_time", 1e3),
        percentiles_s=_percentiles(part(entry, "response_times"), requests),
    )


def _percentiles(histogram: Mapping[str, object], requests: int) -> dict[float, float]:
    """None where the histogram holds more than the requests: then it is no histogram of them."""
    pairs = [(float(ms) / 1e3, as_figure(many)) for ms, many in histogram.items() if ms.replace(".", "", 1).isdecimal()]
    steps = sorted((value, many) for value, many in pairs if many)
    total = sum(many for _, many in steps)
    if total > requests:
        return {}
    found, reached = {}, 0.0
    for value, many in steps:
        reached += many
        found.update({p: value for p in QUANTILES if p not in found and reached >= p * total})
    return found
