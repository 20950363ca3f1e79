"""How many requests were in the server, how many waited, and how late did workers wake?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import overlap_ns, relative_ns
from perfkit.measuring.analysis.ledger import has_server_half

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData
    from perfkit.measuring.analysis.warmup import Window

_WAITS = (("parsed", "preprocess_started"), ("model_queued", "batch_sealed"))


def in_flight_mean(run: RunData, measured: Measured) -> float | None:
    """Mean number of requests in the server: by its gauge, else by its ledger, else not known."""
    parts = [_gauge_part(run, window) for window in measured.windows]
    seconds = sum(span for span, _ in parts)
    if seconds > 0:
        return sum(area for _, area in parts) / seconds
    return _mean_inside(run, measured, ("accepted", "replied"))


def _gauge_part(run: RunData, window: Window) -> tuple[float, float]:
    """Nanoseconds between the first and last gauge reading inside a window, and the integral over them."""
    inside = [
        reading
        for reading in run.gauges
        if reading["round"] == window.round and window.start_ns <= reading["time_ns"] - run.started_ns <= window.end_ns
    ]
    if len(inside) < 2:
        return 0.0, 0.0
    first, last = inside[0], inside[-1]
    return float(last["time_ns"] - first["time_ns"]), float(last["area_ns"] - first["area_ns"])


def queue_depth_mean(run: RunData, measured: Measured) -> float | None:
    """Mean number of requests that waited for a worker, before preprocessing or for a batch; None without a ledger."""
    parts = [_mean_inside(run, measured, span) for span in _WAITS]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _mean_inside(run: RunData, measured: Measured, span: tuple[str, str]) -> float | None:
    if measured.seconds <= 0 or not has_server_half(run.requests).any():
        return None
    begins, ends = (relative_ns(run.requests, name, run.started_ns) for name in span)
    if np.isnan(begins).all() or np.isnan(ends).all():
        return None
    spent = sum(float(overlap_ns(begins, ends, (window.start_ns, window.end_ns)).sum()) for window in measured.windows)
    return spent / NS_PER_S / measured.seconds


def windowed_batches(run: RunData, measured: Measured) -> pd.DataFrame:
    """The batches that were sealed inside a measured window."""
    sealed = relative_ns(run.batches, "batch_sealed", run.started_ns)
    inside = np.zeros(len(sealed), dtype=bool)
    for window in measured.windows:
        inside |= (sealed >= window.start_ns) & (sealed <= window.end_ns)
    return run.batches[inside]


def wake_lag_s(run: RunData, batches: pd.DataFrame) -> float | None:
    """Mean time from the device's end to the worker running again."""
    ended, computed = (relative_ns(batches, name, run.started_ns) for name in ("d2h_ended", "compute_ended"))
    lags = relative_ns(batches, "woken", run.started_ns) - np.where(np.isnan(ended), computed, ended)
    return None if not len(lags) or np.isnan(lags).all() else float(np.nanmean(lags)) / NS_PER_S
