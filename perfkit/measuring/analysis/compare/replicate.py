"""What does one run contribute to a comparison? One number a metric: the run is the unit.

A run's own P95 needs fewer requests here than where it stands alone: its uncertainty is not taken from
inside the run but from how the runs differ, so only the order statistic must exist. P99 is taken only
where the run's certificate gives it a value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from perfkit.measuring.analysis.floors import floor_count
from perfkit.measuring.analysis.latency import at_probability
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.rundata import RunData


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure that runs are compared by."""

    name: str  # as in JSON: throughput_rps, p50_s
    title: str
    is_more_better: bool


METRICS: tuple[Metric, ...] = (
    Metric(name="throughput_rps", title="throughput", is_more_better=True),
    Metric(name="p50_s", title="P50", is_more_better=False),
    Metric(name="p95_s", title="P95", is_more_better=False),
    Metric(name="p99_s", title="P99", is_more_better=False),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One run reduced to a number a metric; None = the run has none. What disturbed it stands beside."""

    run_id: str
    created: str
    grade: str
    reasons: tuple[str, ...]
    requests: int
    values: Mapping[str, float | None]  # by the metrics' names
    error_ratio: float
    stolen_ratio: float | None
    load_average: float | None
    pressure_ratio: float | None = None  # share of the time in which some task waited for a core
    throttled_ratio: float | None = None
    neighbour_cores: float | None = None

    @property
    def is_void(self) -> bool:
        """Whether the instruments failed, so that nothing of the run counts."""
        return self.grade == "void"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return dataclasses.asdict(self) | {"reasons": list(self.reasons), "values": dict(self.values)}


def replicate_values(point: Mapping[str, Any], run: RunData) -> dict[str, float | None]:
    """The metrics of a run from its certificate and its tables; all None for a void one."""
    rate = point["throughput_rps"]["value"]
    if point["grade"] == "void" or not rate:
        return dict.fromkeys((metric.name for metric in METRICS), None)
    ordered = np.sort(measure_windows(run).latency_s)
    found = {f"p{percent}_s": _sample_quantile(ordered, percent / 100) for percent in (50, 95)}
    return {"throughput_rps": float(rate), **found, "p99_s": point["latency_s"]["p99"]["value"]}


def _sample_quantile(ordered: np.ndarray[Any, np.dtype[np.float64]], p: float) -> float | None:
    """None below the floor, or when the quantile falls among requests that never got a reply."""
    if len(ordered) < floor_count(p):
        return None
    value = at_probability(ordered, p)
    return value if np.isfinite(value) else None
