"""Does any figure exceed what is possible? Then an instrument lies.

D = busy time / completions of the same run (Denning and Buzen 1978): X <= N / (D + Z), a worker's
device work fits into the time there was, and the server's CPU into the cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import overlap_ns, relative_ns
from perfkit.measuring.analysis.series import server_cores
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

TOLERANCE = 0.03
ORIGIN = "operational laws, Denning and Buzen 1978; tolerance 3 % by judgement"
_OWN_WORK = (
    ("accepted", "parsed"),
    ("preprocess_started", "preprocess_ended"),
    ("postprocess_started", "postprocess_ended"),
)
_BATCH_WORK = (("batch_sealed", "collated"), ("h2d_started", "h2d_ended"), ("compute_started", "compute_ended"))


def demand_s(run: RunData, measured: Measured) -> float | None:
    """D: seconds of work for one reply over all stations, a batch's work shared by its members."""
    if not len(run.batches) or measured.replies == 0:
        return None
    spans = [(window.start_ns, window.end_ns) for window in measured.windows]
    busy = 0.0
    for table, work in ((run.requests, _OWN_WORK), (run.batches, _BATCH_WORK)):
        for begins, ends in work:
            start, end = (relative_ns(table, name, run.started_ns) for name in (begins, ends))
            busy += sum(float(overlap_ns(start, end, span).sum()) for span in spans)
    return busy / NS_PER_S / measured.replies


def check_throughput_bound(run: RunData, measured: Measured) -> Check:
    """X (D + Z) / N is at most 1: no user is served faster than the work takes."""
    name = "throughput bound"
    demand = None if run.loads_beside else demand_s(run, measured)
    if run.users is None or demand is None or measured.throughput_rps is None:
        return not_judged(name, 1 + TOLERANCE, ORIGIN, "needs a closed loop, alone, and the server's ledger")
    ratio = measured.throughput_rps * (demand + run.think_s) / run.users
    rate, work = units.format_rate(measured.throughput_rps), units.format_duration(demand)
    text = f"{rate} from {run.users} users, each reply {work} of work"
    return at_most(name, ratio, 1 + TOLERANCE, ORIGIN, text)


def check_busy(run: RunData, measured: Measured) -> Check:
    """No worker's device computed for longer than there was time."""
    name = "device busy"
    ratios = busy_ratios(run, measured)
    if not ratios:
        return not_judged(name, 1 + TOLERANCE, ORIGIN, "no batches were recorded")
    highest = max(ratios)
    text = f"a worker's device was busy for {units.format_percent(highest)} of the time"
    return at_most(name, highest, 1 + TOLERANCE, ORIGIN, text)


def busy_ratios(run: RunData, measured: Measured) -> list[float]:
    """Share of the measured time in which each model thread's device computed."""
    if not len(run.batches) or measured.seconds <= 0:
        return []
    start, end = (relative_ns(run.batches, name, run.started_ns) for name in ("compute_started", "compute_ended"))
    threads = run.batches["model_thread"].to_numpy(dtype="float64", na_value=np.nan)
    return [_busy_ratio(start[threads == thread], end[threads == thread], measured) for thread in np.unique(threads)]


def _busy_ratio(start: Floats, end: Floats, measured: Measured) -> float:
    inside = (overlap_ns(start, end, (window.start_ns, window.end_ns)).sum() for window in measured.windows)
    return float(sum(inside)) / NS_PER_S / measured.seconds


def check_cores(run: RunData, measured: Measured) -> Check:
    """The server used no more cores than there are."""
    cores = run.core_limit or run.usable_cores
    name, allowed = "cores used", cores * (1 + TOLERANCE)
    used = server_cores(run, measured.windows)
    if used is None:
        return not_judged(name, allowed, ORIGIN, "the server's CPU time was not recorded")
    return at_most(
        name, used, allowed, ORIGIN, f"{units.format_number(used)} cores used of {units.format_number(cores)}"
    )
