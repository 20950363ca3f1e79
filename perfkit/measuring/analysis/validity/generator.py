"""Did the load generator do what it was asked, without getting in the way?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import relative_ns
from perfkit.measuring.analysis.latency import at_probability
from perfkit.measuring.analysis.validity.check import Check, at_most, not_judged
from perfkit.settings.server import is_light

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

LEAST_LATENESS_S = 0.002
LATENESS_RATIO = 0.10
LATENESS_ORIGIN = "own trials on a 2-core machine: P99 at most 2 ms, or 10 % of the P50 latency when that is more"
SCHEDULE_LIMIT = 1.957  # Anderson-Darling with estimated mean, 1 % point; Stephens 1974, table 1
SCHEDULE_ORIGIN = "Anderson-Darling on the schedule, Stephens 1974, p > .01"
LEAST_ACHIEVED = 0.99
ACHIEVED_ORIGIN = "judgement: achieved / offered at least .99"
MOST_MACHINE = 0.10
MACHINE_ORIGIN = "judgement: at most 10 % of the machine when the model computes on the CPU"
MOST_CORE = 0.50
CORE_ORIGIN = "judgement: at most half of the generator's core"
_LEAST_GAPS = 8


def lateness_p99_s(run: RunData, measured: Measured) -> float | None:
    """How late the generator took requests up.

    In a closed loop with kept connections that is the time from schedule to send, and the windows' requests
    are pooled. Else waiting for a connection, or for the next attempt, is part of that time, and the worst
    round's report counts.
    """
    is_sent_once = run.load.get("keep_alive", True) and run.load.get("retries", {}).get("max_attempts", 1) == 1
    if run.is_closed_loop and is_sent_once and len(measured.scheduled_ns):
        late = relative_ns(measured.rows, "sent", 0) - relative_ns(measured.rows, "scheduled", 0)
        late = np.sort(late[~np.isnan(late)])
        return at_probability(late, 0.99) / NS_PER_S if len(late) else None
    reported = [report.get("lateness_p99_s") for report in run.generator_reports]
    return max((float(late) for late in reported if late is not None), default=None)


def check_lateness(run: RunData, measured: Measured) -> Check:
    """Requests left when they were due."""
    name = "generator lateness"
    late = lateness_p99_s(run, measured)
    if late is None or not len(measured.latency_s):
        return not_judged(name, LEAST_LATENESS_S, LATENESS_ORIGIN, "no report of the load generator")
    median = at_probability(np.sort(measured.latency_s), 0.5)
    allowed = max(LEAST_LATENESS_S, LATENESS_RATIO * median) if np.isfinite(median) else LEAST_LATENESS_S
    text = f"P99 of the lateness is {units.format_duration(late)}, allowed are {units.format_duration(allowed)}"
    return at_most(name, late, allowed, LATENESS_ORIGIN, text)


def check_schedule(run: RunData) -> Check:
    """The schedule of a Poisson loop has exponential gaps."""
    name = "schedule"
    if run.is_closed_loop or run.load.get("arrivals") != "poisson" or run.steps:
        return not_judged(name, SCHEDULE_LIMIT, SCHEDULE_ORIGIN, "holds for an open Poisson loop at one rate only")
    gaps = _scheduled_gaps(run)
    if len(gaps) < _LEAST_GAPS:
        return not_judged(name, SCHEDULE_LIMIT, SCHEDULE_ORIGIN, f"{len(gaps)} gaps are too few")
    return at_most(
        name, anderson_darling(gaps), SCHEDULE_LIMIT, SCHEDULE_ORIGIN, "the gaps of the schedule are not exponential"
    )


def _scheduled_gaps(run: RunData) -> Floats:
    scheduled = relative_ns(run.requests, "scheduled", run.started_ns)
    rounds = run.requests["round"].to_numpy(dtype="float64", na_value=np.nan)
    parts = [np.diff(np.sort(scheduled[(rounds == entry["index"]) & ~np.isnan(scheduled)])) for entry in run.rounds]
    # Instants are whole nanoseconds: gaps of 0, which the law has none of, were shorter than 1.
    return np.maximum(np.concatenate(parts), 0.5) if parts else np.array([])


def anderson_darling(gaps: Floats) -> float:
    """A squared of gaps against the exponential law with their own mean, with Stephens' factor for small n."""
    n = len(gaps)
    shares = np.clip(-np.expm1(-np.sort(gaps) / gaps.mean()), 1e-300, 1 - 1e-16)
    weights = 2 * np.arange(1, n + 1) - 1
    squared = -n - float(np.sum(weights * (np.log(shares) + np.log1p(-shares[::-1])))) / n
    return squared * (1 + 0.6 / n)


def check_achieved(run: RunData) -> Check:
    """An open loop sent what it had scheduled."""
    name = "achieved rate"
    if run.is_closed_loop or not run.generator_reports:
        return not_judged(name, LEAST_ACHIEVED, ACHIEVED_ORIGIN, "needs an open loop and the generator's report")
    scheduled, sent = (sum(int(report[count]) for report in run.generator_reports) for count in ("scheduled", "sent"))
    ratio = sent / scheduled if scheduled else 0.0
    passed = ratio >= LEAST_ACHIEVED
    reason = "" if passed else f"{sent} of {scheduled} scheduled requests were sent"
    return Check(
        name=name, passed=passed, figure=ratio, threshold=LEAST_ACHIEVED, origin=ACHIEVED_ORIGIN, reason=reason
    )


def generator_cpu_ratio(run: RunData) -> float | None:
    """Share of the usable cores that the generator used, over all rounds."""
    wall_s = sum(float(report["wall_s"]) for report in run.generator_reports)
    cpu_s = sum(float(report["cpu_s"]) for report in run.generator_reports)
    return cpu_s / wall_s / run.usable_cores if wall_s > 0 else None


def retried_ratio(run: RunData) -> float | None:
    """Attempts that were made again per request, over all rounds; None when the load does not retry."""
    retrying = [report for report in run.generator_reports if report.get("retries")]
    scheduled = sum(int(report["scheduled"]) for report in retrying)
    return sum(int(report["retries"]["retried"]) for report in retrying) / scheduled if scheduled else None


def check_generator_cpu(run: RunData) -> Check:
    """The generator left the machine to the model, or kept half of its own core free."""
    name = "generator CPU"
    ratio = generator_cpu_ratio(run)
    model = str((run.settings or {}).get("model", ""))
    if ratio is None:
        return not_judged(name, MOST_MACHINE, MACHINE_ORIGIN, "no report of the load generator")
    if model.partition(":")[0] == "noop":
        return not_judged(name, MOST_CORE, CORE_ORIGIN, "a no-op server is limited by the generator by intention")
    if run.settings is not None and not run.simulated and not is_light(model):
        text = f"the generator used {units.format_percent(ratio)} of the machine that the model computes on"
        return at_most(name, ratio, min(MOST_MACHINE, MOST_CORE / run.usable_cores), MACHINE_ORIGIN, text)
    core = ratio * run.usable_cores / generator_cores(run)
    return at_most(name, core, MOST_CORE, CORE_ORIGIN, f"the generator used {units.format_percent(core)} of a core")


def generator_cores(run: RunData) -> int:
    """Cores that the generator's processes had at once: one each, but no more than they may run on."""
    allowed = {int(core) for report in run.generator_reports for core in report.get("cpus") or ()}
    processes = max((len(report.get("generators") or (report,)) for report in run.generator_reports), default=1)
    return max(1, min(processes, len(allowed)))
