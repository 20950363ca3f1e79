"""Was it enough? Effective requests for each quantile, length of the run, and different inputs; else it is short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.certificate.entry import Entry, held, not_applicable
from perfkit.measuring.analysis.floors import CONFIDENCE, floor_count
from perfkit.measuring.analysis.grading import UNSEEN_WARMUP, shortfall_text
from perfkit.measuring.analysis.latency import quantile
from perfkit.measuring.analysis.payloads import LEAST_DIFFERENT, count_different
from perfkit.measuring.analysis.precision import ORIGIN as PRECISION_ORIGIN
from perfkit.measuring.analysis.precision import judge_precision
from perfkit.measuring.analysis.relaxation import CLAIMED_TIMES, LEAST_TIMES, find_relaxation_s
from perfkit.measuring.analysis.repeats import repeated_ratio

if TYPE_CHECKING:
    from perfkit.measuring.analysis.latency import Quantile
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData
    from perfkit.measuring.analysis.steady import Steadiness

FLOOR_ORIGIN = f"MLPerf's early stopping, confidence {CONFIDENCE:g}, on requests that count as independent"
LENGTH_ORIGIN = (
    "relaxation time S / (1 - sqrt(load))² of M/M/1; own trials: the 95 % interval of P99 covers "
    ".92, .89 and .88 at loads .5, .8 and .9 from 300 of them, .925 to .94 from 1,000"
)
WARMUP_ORIGIN = "MSER-5 places no minimum among fewer than 10 means of 5"
PAYLOADS_ORIGIN = "judgement, after MLPerf's audit of repeated samples: one input says nothing of others, or of a cache"


def certify_sufficiency(
    run: RunData, measured: Measured, seen: tuple[Steadiness, Mapping[str, Quantile]]
) -> list[Entry]:
    """Everything that a run can have too little of; `seen` are its steadiness and its latency's quantiles."""
    steadiness, latency = seen
    enough = [certify_quantile(name, found) for name, found in latency.items()]
    return [
        *enough,
        _length(run, measured, latency),
        _warmup(measured, steadiness),
        _payloads(run, measured),
        _precision(run, measured),
    ]


def certify_quantile(name: str, found: Quantile) -> Entry:
    """Whether there are enough requests for a quantile (p50, p99) to have a value."""
    floor = floor_count(int(name[1:]) / 100)
    is_short = found.value is None and (found.n_eff < floor or found.needs_s is None)
    status, costs, reason = held("short", [shortfall_text(name, found)] if is_short else [])
    return Entry(
        name=f"{name.upper()} sample",
        status=status,
        figures={"n_eff": found.n_eff, "n": found.n, "needs_s": found.needs_s},
        threshold=floor,
        origin=FLOOR_ORIGIN,
        costs=costs,
        reason=reason,
    )


def _length(run: RunData, measured: Measured, latency: Mapping[str, Quantile]) -> Entry:
    name, tail = "run length", latency["p99"]
    tau_s = find_relaxation_s(run, measured)
    if tau_s is None or not np.isfinite(tau_s):
        why = "needs an open loop below a capacity that the ledger shows; a closed loop is judged by its n_eff"
        return not_applicable(name, LENGTH_ORIGIN, "short", why, LEAST_TIMES)
    times = measured.seconds / tau_s
    figures = {"relaxation_times": times, "relaxation_s": tau_s, "measured_s": measured.seconds}
    is_short = times < LEAST_TIMES and tail.n > 0 and tail.n_eff >= floor_count(0.99)
    status, costs, reason = held("short", [shortfall_text("p99", tail)] if is_short else [])
    if times < LEAST_TIMES and not is_short:
        reason = "P99 has too few requests as it is"
    elif times < CLAIMED_TIMES and not is_short:
        reason = f"from {CLAIMED_TIMES:g} relaxation times on the interval of P99 covers what it claims"
    return Entry(
        name=name,
        status=status,
        figures=figures,
        threshold=LEAST_TIMES,
        origin=LENGTH_ORIGIN,
        costs=costs,
        reason=reason,
    )


def _warmup(measured: Measured, found: Steadiness) -> Entry:
    status, costs, reason = held("short", [UNSEEN_WARMUP] if found.warmup_ended is None else [])
    longest = max(measured.sizes, default=0)
    return Entry(
        name="warm-up visible",
        status=status,
        figures={"longest_round_requests": longest},
        threshold=None,
        origin=WARMUP_ORIGIN,
        costs=costs,
        reason=reason,
    )


def _payloads(run: RunData, measured: Measured) -> Entry:
    name, different = "payloads", count_different(run, measured)
    if different is None:
        return not_applicable(name, PAYLOADS_ORIGIN, "short", "which input a request carried is not known")
    text = f"all {len(measured.rows)} requests carried the same payload; give at least {LEAST_DIFFERENT} different ones"
    status, costs, reason = held("short", [text] if different < LEAST_DIFFERENT else [])
    return Entry(
        name=name,
        status=status,
        figures={
            "different_payloads": different,
            "requests": len(measured.rows),
            "repeated_ratio": repeated_ratio(len(measured.rows), different),
        },
        threshold=LEAST_DIFFERENT,
        origin=PAYLOADS_ORIGIN,
        costs=costs,
        reason=reason,
    )


def _precision(run: RunData, measured: Measured) -> Entry:
    """Whether the run knew what it was asked to know (`--until`); a goal that was missed costs no grade."""
    name, goal = "precision", run.goal
    if goal is None:
        return not_applicable(name, PRECISION_ORIGIN, "nothing", "no precision was asked for; --until does")
    found = quantile(measured.latency_s, measured.sizes, goal.p, measured.seconds, goal.confidence)
    judged = judge_precision(goal, found, measured.seconds)
    least = "at least" if judged.is_bound else "about"
    text = f"{goal.quantile.upper()} is not known to ±{units.format_percent(goal.target_ratio)} yet; "
    text += f"that takes {least} {units.format_duration(judged.needs_s)} of measuring"
    status, costs, reason = held("nothing", [] if judged.is_reached else [text])
    ends = {f"{goal.quantile}_low_s": found.low, f"{goal.quantile}_high_s": found.high}
    further = {"confidence_ratio": goal.confidence, "measured_s": measured.seconds, "needs_s": judged.needs_s}
    return Entry(
        name=name,
        status=status,
        figures={"half_width_ratio": judged.half_width_ratio, **ends, **further},
        threshold=goal.target_ratio,
        origin=PRECISION_ORIGIN,
        costs=costs,
        reason=reason,
    )
