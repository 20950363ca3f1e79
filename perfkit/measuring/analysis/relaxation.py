"""How long must an open loop run before its P99 can be certified?

A queue forgets its past in a relaxation time, tau = S / (1 - sqrt(rho))^2 (M/M/1, conservative); an
interval of P99 holds from 300 of them. A saturated closed loop has no such time; its runs are judged by their
effective requests. Here S is the time per request of all workers together at full batches, and rho the rate
relative to that capacity.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from perfkit.measuring.analysis.calls import occupation

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

# Own trials on simulated M/M/1: the 95 % interval of P99 covers .92, .89 and .88 at loads .5, .8 and .9; from
# 1,000 relaxation times .925 to .94, and that is the coverage to claim.
LEAST_TIMES = 300.0
CLAIMED_TIMES = 1_000.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the workers can do: requests a second at full batches, and the mean time of one call."""

    max_rps: float
    call_s: float


def relaxation_s(load_ratio: float, capacity: Capacity) -> float:
    """tau in seconds; infinite at or above capacity. Never below one call of the model."""
    if load_ratio >= 1:
        return float("inf")
    return max(capacity.call_s, 1 / capacity.max_rps / (1 - math.sqrt(load_ratio)) ** 2)


def find_capacity(run: RunData, measured: Measured) -> Capacity | None:
    """Fits the call time H(b) = a + c b over the batches and takes it at the largest batch; None without batches."""
    if run.max_batch is None or not len(run.batches) or not measured.windows:
        return None
    found = occupation(run)
    seconds, sizes, workers = found.seconds, found.sizes, found.workers
    known = np.isfinite(seconds) & (seconds > 0)
    if not known.any():
        return None
    full_s = _call_time_at(run.max_batch, seconds[known], sizes[known])
    return Capacity(max_rps=workers * run.max_batch / full_s, call_s=float(seconds[known].mean()))


def _call_time_at(size: int, seconds: Floats, sizes: Floats) -> float:
    """Call time of a batch of `size`; where all batches were of one size, batching is assumed to gain nothing."""
    if len(np.unique(sizes)) < 2:
        return float(seconds.mean()) * size / float(sizes[0])
    slope, base = np.polyfit(sizes, seconds, 1)
    return float(max(base, 0.0) + max(slope, 0.0) * size) if slope > 0 else float(seconds.mean())


def find_relaxation_s(run: RunData, measured: Measured) -> float | None:
    """tau of this open loop in seconds; None for a closed loop or an unknown capacity."""
    capacity = None if run.is_closed_loop else find_capacity(run, measured)
    if capacity is None or measured.seconds <= 0:
        return None
    return relaxation_s(len(measured.rows) / measured.seconds / capacity.max_rps, capacity)


def needed_seconds(run: RunData, measured: Measured) -> float | None:
    """Seconds that this open loop must run for its P99; None for a closed loop or an unknown capacity."""
    tau_s = find_relaxation_s(run, measured)
    return None if tau_s is None else LEAST_TIMES * tau_s
