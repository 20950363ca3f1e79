"""What do single requests add up to, when there may be more of them than fit in memory?

Counts, sums and extremes are exact. Latencies are kept for quantiles in the order of their start; past
a limit every second one is dropped, again and again, so that memory stays bounded, and that is told.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.certificate import Certificate
from perfkit.measuring.analysis.latency import quantile
from perfkit.measuring.importers.certificate import certify
from perfkit.measuring.importers.imported import Level, Requests

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LIMIT = 12_000_000  # requests kept; 18 bytes each, and sorting them takes as much again
WHOLE = "all requests"
_BLOCK = 1 << 16
_LATEST_NS = 1 << 62  # the year 2116
_LONGEST_NS = 10**16  # 116 days
_FINE_NS = 10_000_000  # a clock by which requests can be put in order
_LEAST_TICKS = 20  # of the clock in a run whose length it tells within 5 %
_LABEL_LIMIT = 1000  # more names than that are ids in disguise
_OTHERS = "(other names)"


class RequestLog:
    """Collects requests one by one."""

    def __init__(self, limit: int = LIMIT, resolution_ns: int = 1) -> None:
        self._limit = limit
        self._resolution_ns = resolution_ns
        self._labels: dict[str, int] = {}
        self._totals: list[_Total] = []
        self._kept: list[_Block] = []
        self._count = 0
        self.stride = 1
        self._is_joined = False
        self._clear()

    def add(self, start_ns: int, latency_ns: int, is_error: bool, label: str) -> None:
        """One answered request; raises ValueError for times that no request can have."""
        if not 0 <= start_ns <= _LATEST_NS or not 0 <= latency_ns <= _LONGEST_NS:
            raise ValueError(f"a start of {start_ns} ns and a latency of {latency_ns} ns are no times of a request")
        index = self._labels.get(label)
        self._start.append(start_ns)
        self._latency.append(latency_ns)
        self._error.append(is_error)
        self._label.append(self._index_of(label) if index is None else index)
        if len(self._start) >= _BLOCK:
            self._flush()

    def add_many(self, start_ns: Int64s, latency_ns: Int64s, is_error: NDArray[np.bool_], labels: Labels) -> None:
        """Answered requests in columns, their labels as codes and the texts that these stand for."""
        codes, texts = labels
        if not len(start_ns):
            return
        if not 0 <= start_ns.min() <= start_ns.max() <= _LATEST_NS or not 0 <= latency_ns.min() <= _LONGEST_NS:
            raise ValueError("a start or a latency is no time of a request")
        self._flush()
        used = {int(code): self._index_of(texts[code]) for code in np.unique(codes)}
        index = np.zeros(max(used) + 1, dtype=np.uint16)
        index[list(used)] = list(used.values())
        block = np.empty(len(start_ns), dtype=_ROW)
        for name, values in zip(_ROW.names or (), (start_ns, latency_ns, is_error, index[codes]), strict=True):
            block[name] = values
        for at in range(0, len(block), _BLOCK):
            self._keep(block[at : at + _BLOCK])

    def add_unanswered(self, label: str) -> None:
        """One request without an answer: it counts, but has no latency."""
        self._totals[self._index_of(label)].unanswered += 1

    def __len__(self) -> int:
        """Requests with and without an answer."""
        self._flush()
        return sum(total.count + total.unanswered for total in self._totals)

    def levels(self, **of_whole: Any) -> tuple[Level, ...]:
        """All requests, and where there are several names each of them; `of_whole` is known of the whole run."""
        columns = self._rows()
        known = {**self._rough(), **of_whole}
        whole = _level(WHOLE, self._totals, columns, known)
        if len(self._totals) < 2:
            return (whole,)
        loop: dict[str, Any] = {name: of_whole[name] for name in ("loop", "has_think_time") if name in of_whole}
        order = np.argsort(columns["label"], kind="stable")
        edges = np.searchsorted(columns["label"][order], np.arange(len(self._totals) + 1))
        parts = [
            _level(name, [self._totals[at]], columns[order[edges[at] : edges[at + 1]]], {**self._rough(), **loop})
            for name, at in self._labels.items()
        ]
        return (whole, *parts)

    def requests(self) -> Requests | None:
        """The single requests; None when there is none."""
        rows = self._rows()
        if not len(rows):
            return None
        return Requests(
            start_ns=rows["start_ns"],
            latency_ns=rows["latency_ns"],
            is_error=rows["error"] != 0,
            name=rows["label"],
            names=tuple(self._labels),
            stride=self.stride,
        )

    def _rows(self) -> _Block:
        """All that is kept, joined once."""
        self._flush()
        if len(self._kept) != 1 or not self._is_joined:
            self._kept = [_joined(self._kept, self._resolution_ns <= _FINE_NS)]
            self._is_joined = True
        return self._kept[0]

    def _rough(self) -> dict[str, Any]:
        """A clock too coarse for the run tells neither its length nor a rate."""
        answered = [total for total in self._totals if total.count]
        span_ns = max((total.last_ns for total in answered), default=0) - min(
            (total.first_ns for total in answered), default=0
        )
        return {"duration_s": None, "throughput_rps": None} if span_ns < _LEAST_TICKS * self._resolution_ns else {}

    def _index_of(self, label: str) -> int:
        name = label if label in self._labels or len(self._labels) < _LABEL_LIMIT else _OTHERS
        if name not in self._labels:
            self._labels[name] = len(self._totals)
            self._totals.append(_Total())
        return self._labels[name]

    def _clear(self) -> None:
        self._start, self._latency = array("q"), array("q")
        self._error, self._label = array("B"), array("H")

    def _flush(self) -> None:
        if not self._start:
            return
        block = np.empty(len(self._start), dtype=_ROW)
        for name, values in zip(_ROW.names or (), (self._start, self._latency, self._error, self._label), strict=True):
            block[name] = values
        self._clear()
        self._keep(block)

    def _keep(self, block: _Block) -> None:
        for index in np.unique(block["label"]):
            self._totals[index].add(block[block["label"] == index])
        self._kept.append(block[:: self.stride].copy())
        self._is_joined = False
        self._count += len(self._kept[-1])
        if self._count > self._limit:
            self._kept = [kept[::2].copy() for kept in self._kept]
            self._count = sum(map(len, self._kept))
            self.stride *= 2


Int64s = NDArray[np.int64]
Labels = tuple[NDArray[np.int32], Sequence[str]]
_ROW = np.dtype([("start_ns", "i8"), ("latency_ns", "i8"), ("error", "u1"), ("label", "u2")])
_Block = NDArray[np.void]


@dataclasses.dataclass(slots=True)
class _Total:
    """Exact figures of one name."""

    count: int = 0
    unanswered: int = 0
    errors: int = 0
    sum_ns: float = 0.0
    error_sum_ns: float = 0.0
    least_ns: int = 1 << 62
    most_ns: int = 0
    first_ns: int = 1 << 62
    last_ns: int = -(1 << 62)

    def add(self, rows: _Block) -> None:
        """Takes in a block of requests."""
        latency, start, failed = rows["latency_ns"], rows["start_ns"], rows["error"] != 0
        self.count += len(rows)
        self.errors += int(failed.sum())
        self.sum_ns += float(latency.sum(dtype=np.float64))
        self.error_sum_ns += float(latency[failed].sum(dtype=np.float64))
        self.least_ns = min(self.least_ns, int(latency.min()))
        self.most_ns = max(self.most_ns, int(latency.max()))
        self.first_ns = min(self.first_ns, int(start.min()))
        self.last_ns = max(self.last_ns, int((start + latency).max()))


def _joined(blocks: list[_Block], is_ordered: bool) -> _Block:
    """In the order of their start; with a coarse clock in that of the file, which tells more.

    Takes the blocks out of the list and sorts column by column: the whole is never in memory three times.
    """
    joined = np.concatenate(blocks) if blocks else np.empty(0, dtype=_ROW)
    blocks.clear()
    start = joined["start_ns"]
    if not is_ordered or bool((start[1:] >= start[:-1]).all()):
        return joined
    order = np.argsort(start, kind="stable")
    for name in _ROW.names or ():
        joined[name] = joined[name][order]
    return joined


def _level(name: str, totals: Sequence[_Total], rows: _Block, known: dict[str, Any]) -> Level:
    answered = sum(total.count for total in totals)
    unanswered = sum(total.unanswered for total in totals)
    errors = sum(total.errors for total in totals)
    counts = {"requests": answered + unanswered, "errors": errors + unanswered}
    if not answered:
        return Level(**{"name": name, **counts, **_graded(certify(np.empty(0), {})), **known})
    seconds = (max(total.last_ns for total in totals) - min(total.first_ns for total in totals)) / NS_PER_S
    latency_s = rows["latency_ns"] / NS_PER_S
    good = answered - errors
    quantiles = {p: quantile(latency_s, [len(latency_s)], p, seconds) for p in QUANTILES}
    error_ns = sum(total.error_sum_ns for total in totals)
    sum_ns = sum(total.sum_ns for total in totals)
    figures = {
        "duration_s": seconds if seconds > 0 else None,
        "throughput_rps": answered / seconds if seconds > 0 else None,
        "mean_s": sum_ns / answered / NS_PER_S,
        "min_s": min(total.least_ns for total in totals) / NS_PER_S,
        "max_s": max(total.most_ns for total in totals) / NS_PER_S,
        "good_mean_s": (sum_ns - error_ns) / good / NS_PER_S if good else None,
        "error_mean_s": error_ns / errors / NS_PER_S if errors else None,
        "percentiles_s": dict(zip(QUANTILES, map(float, np.quantile(latency_s, QUANTILES)), strict=True)),
        "quantiles": quantiles,
        **_graded(certify(latency_s, quantiles)),
    }
    return Level(**{"name": name, **counts, **figures, **known})


def _graded(found: Certificate) -> dict[str, Any]:
    return {"grade": found.grade.label, "reasons": found.grade.reasons, "entries": found.entries}
