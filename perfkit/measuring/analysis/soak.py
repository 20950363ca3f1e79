"""Did anything grow while a load went on for long? Memory, threads and the queue, from one quarter to the last.

What a soak is for (seed 001, section 2.3): tasks that pile up, memory that only ever grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.steady import DRIFT_CONFIDENCE, LEAST_STEP_RATIO

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData

LEAST_READINGS = 20  # judgement: five in each quarter
_SERIES = {"memory_bytes": ("process", "rss")}
_GAUGES = {"queued_requests": "queued", "threads": "threads"}
_LEAST_GROWTH = {"queued_requests": 1.0, "threads": 1.0}  # judgement: less than one request or thread is nothing


def soak_figures(run: RunData) -> dict[str, Any]:
    """`soak`: what was recorded of memory, queue and threads, and which of them grew; {} for any other profile."""
    if run.load.get("profile") != "soak":
        return {}
    found = {name: _growth(name, *_of_series(run, *source)) for name, source in _SERIES.items()}
    found |= {name: _growth(name, *_of_gauges(run, gauge)) for name, gauge in _GAUGES.items()}
    return {"soak": {name: one for name, one in found.items() if one is not None}}


def _of_series(run: RunData, source: str, name: str) -> tuple[Floats, Floats]:
    rows = run.series[(run.series["source"] == source) & (run.series["name"] == name)]
    times = (rows["time_ns"] - run.started_ns).to_numpy(dtype="float64") / NS_PER_S
    return times, rows["value"].to_numpy(dtype="float64")


def _of_gauges(run: RunData, name: str) -> tuple[Floats, Floats]:
    known = [reading for reading in run.gauges if reading.get(name) is not None]
    times = np.array([(int(reading["time_ns"]) - run.started_ns) / NS_PER_S for reading in known])
    return times, np.array([float(reading[name]) for reading in known])


def _growth(name: str, times_s: Floats, values: Floats) -> dict[str, Any] | None:
    """First and last quarter, and whether the growth is real: Theil-Sen's 99 % slope above 0, and more than 10 %."""
    from scipy.stats import theilslopes

    if len(values) < LEAST_READINGS:
        return None
    quarter = len(values) // 4
    first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
    _, _, low, _ = theilslopes(values, times_s, alpha=DRIFT_CONFIDENCE)
    least = max(LEAST_STEP_RATIO * abs(first), _LEAST_GROWTH.get(name, 0.0))
    return {"first": first, "last": last, "is_growing": bool(low > 0 and last - first > least)}
