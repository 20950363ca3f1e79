"""What does a measured cell tell of the service's parts: the calls by their size, the host's work, what is around?

Host work is told by CPU time, which a busy machine hardly changes; waits by medians, of which it prolongs a few by a
lot; and the model's calls by means, for their sum is what a worker's time is spent on.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.instants import relative_ns
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.occupancy import windowed_batches
from perfkit.measuring.analysis.series import server_cores

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The model's calls of one cell, one entry a call; `around_s` is its worker's time beside computing and copies."""

    rounds: Floats
    sizes: Floats
    compute_s: Floats
    h2d_s: Floats
    d2h_s: Floats
    cpu_s: Floats
    around_s: Floats


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One cell as measured: workers, largest batch, the calls, and the host's parts of a request in seconds."""

    workers: int
    max_size: int
    has_copies: bool
    calls: Calls
    preprocess_cpu_s: float
    postprocess_cpu_s: float
    server_cpu_s: float | None  # of the process beside its stages; None where the process was not sampled
    preprocess_wait_s: float  # time there without the CPU
    postprocess_wait_s: float
    pause_s: float  # between a user's reply and its next request in the server's hands

    @property
    def mean_size(self) -> float:
        """Requests a call, on average."""
        return float(self.calls.sizes.mean())


def observe(run: RunData, workers: int, max_size: int) -> Observed | None:
    """The parts of a cell; None when nothing was measured in it."""
    measured = measure_windows(run)
    rows, batches = measured.rows, windowed_batches(run, measured)
    if not len(rows) or not len(batches):
        return None
    calls = _calls(batches, run.started_ns)
    cpu_s = {stage: _seconds(rows, f"{stage}_cpu_ns") for stage in ("preprocess", "postprocess")}
    waits_s = {
        stage: max(0.0, _median(_span(rows, f"{stage}_started", f"{stage}_ended", run.started_ns) - cpu))
        for stage, cpu in cpu_s.items()
    }
    means_s = {stage: float(np.nanmean(cpu)) for stage, cpu in cpu_s.items()}
    return Observed(
        workers=workers,
        max_size=max_size,
        has_copies=bool(batches["h2d_started_ns"].notna().any()),
        calls=calls,
        preprocess_cpu_s=means_s["preprocess"],
        postprocess_cpu_s=means_s["postprocess"],
        server_cpu_s=_server_cpu_s(run, measured, calls, sum(means_s.values())),
        preprocess_wait_s=waits_s["preprocess"],
        postprocess_wait_s=waits_s["postprocess"],
        pause_s=_median(_span(rows, "replied", "received", run.started_ns))
        + _median(_span(rows, "scheduled", "accepted", run.started_ns)),
    )


def _calls(batches: pd.DataFrame, base_ns: int) -> Calls:
    compute_s = _span(batches, "compute_started", "compute_ended", base_ns)
    h2d_s, d2h_s = (np.nan_to_num(_span(batches, f"{way}_started", f"{way}_ended", base_ns)) for way in ("h2d", "d2h"))
    known = ~np.isnan(compute_s)
    whole_s = _span(batches, "batch_sealed", "woken", base_ns)
    return Calls(
        rounds=batches["round"].to_numpy(dtype=np.float64)[known],
        sizes=batches["size"].to_numpy(dtype=np.float64)[known],
        compute_s=compute_s[known],
        h2d_s=h2d_s[known],
        d2h_s=d2h_s[known],
        cpu_s=_seconds(batches, "cpu_ns")[known],
        around_s=(whole_s - compute_s - h2d_s - d2h_s)[known],
    )


def _server_cpu_s(run: RunData, measured: Measured, calls: Calls, stages_cpu_s: float) -> float | None:
    cores = server_cores(run, measured.windows)
    if cores is None or not measured.replies:
        return None
    whole_s = cores * measured.seconds / measured.replies
    calls_s = float(calls.cpu_s.sum() / calls.sizes.sum())
    return max(0.0, whole_s - calls_s - stages_cpu_s)


def _span(table: pd.DataFrame, started: str, ended: str, base_ns: int) -> Floats:
    return (relative_ns(table, ended, base_ns) - relative_ns(table, started, base_ns)) / NS_PER_S


def _seconds(table: pd.DataFrame, column: str) -> Floats:
    return np.asarray(table[column].to_numpy(dtype=np.float64, na_value=np.nan) / NS_PER_S, dtype=np.float64)


def _median(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else 0.0
