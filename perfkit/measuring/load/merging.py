"""How do several generators of one load become one? Raw rows are put together, counts are added.

No percentile is averaged: latencies come from the rows, and lateness from the processes' counts to the
microsecond, added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.measuring.load.lateness import Lateness
from perfkit.measuring.load.samples import SAMPLE_COLUMNS, read_samples

if TYPE_CHECKING:
    import numpy as np

_LATENESS = ("lateness_p50_s", "lateness_p99_s", "lateness_max_s")
_OWN = ("started_ns", "scheduled", "sent", *_LATENESS, "cpu_s", "core_ratio", "cpus", "nice")
_ADDED = ("scheduled", "sent", "held", "cpu_s")
_COUNTED = ("outcomes", "errors", "faults")

Report = Mapping[str, Any]


def read_all_samples(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """The rows of all sample files in the order of their schedule, none lost and none twice."""
    import numpy as np

    parts = [read_samples(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    merged = {name: np.concatenate([part[name] for part in parts]) for name in SAMPLE_COLUMNS}
    order = np.lexsort((merged["request_id"], merged["scheduled_ns"]))
    return {name: column[order] for name, column in merged.items()}


def merge_reports(reports: Sequence[Report]) -> dict[str, Any]:
    """One report on a load that several processes shared; `generators` keeps what each says of itself."""
    first, together = dict(reports[0]), dict(reports[0])
    together.pop("lateness_counts", None)
    if len(reports) == 1:
        return together
    wall_s, cpu_s = max(report["wall_s"] for report in reports), sum(report["cpu_s"] for report in reports)
    return {
        **together,
        "started_ns": min(report["started_ns"] for report in reports),
        "ended_ns": max(report["ended_ns"] for report in reports),
        "drained_ns": max(report["drained_ns"] for report in reports),
        "was_stopped": any(report["was_stopped"] for report in reports),
        **{name: sum(report[name] for report in reports) for name in _ADDED},
        **{name: _summed([report[name] for report in reports]) for name in _COUNTED},
        "retries": _retries([report["retries"] for report in reports]),
        **_lateness(reports),
        **_rates(reports),
        "wall_s": wall_s,
        "cpu_ratio": cpu_s / wall_s / first["usable_cores"] if wall_s else None,
        "core_ratio": cpu_s / wall_s if wall_s else None,
        "cpus": sorted({core for report in reports for core in report["cpus"]}),
        "not_placed": sorted({refused for report in reports for refused in report["not_placed"]}),
        "generators": [{name: report[name] for name in _OWN} for report in reports],
    }


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total.most_common())


def _retries(found: Sequence[Report | None]) -> dict[str, Any] | None:
    known = [one for one in found if one is not None]
    if not known:
        return None
    added = {name: sum(one[name] for one in known) for name in ("retried", "over_budget", "held_back")}
    return {**added, "errors": _summed([one["errors"] for one in known])}


def _lateness(reports: Sequence[Report]) -> dict[str, float | None]:
    merged = Lateness()
    for report in reports:
        merged.include(report["lateness_counts"], report["lateness_max_s"])
    return {
        "lateness_p50_s": merged.quantile_s(0.50),
        "lateness_p99_s": merged.quantile_s(0.99),
        "lateness_max_s": merged.max_s,
    }


def _rates(reports: Sequence[Report]) -> dict[str, float | None]:
    """Rates add up; the process that fell behind most says how much of the offer was achieved."""
    offering = [report for report in reports if report["offered_rps"] is not None]
    if not offering:
        return {"offered_rps": None, "achieved_rps": None, "achieved_ratio": None}
    offered_rps = sum(report["offered_rps"] for report in offering)
    ratio = min(report["achieved_ratio"] for report in offering)
    return {"offered_rps": offered_rps, "achieved_rps": offered_rps * ratio, "achieved_ratio": ratio}
