"""Was there one steady state? Overload, warm-up, steps, drift and windows that differ leave a run unsteady."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perfkit.measuring.analysis.certificate.entry import Entry, Figures, held, not_applicable
from perfkit.measuring.analysis.overload import MOST_BACKLOG_RATIO, find_overload
from perfkit.measuring.analysis.stability import MOST_SPREAD
from perfkit.measuring.analysis.steady import (
    LEAST_STEP_RATIO,
    Steadiness,
    describe_drift,
    describe_steps,
    describe_warmup,
)
from perfkit.measuring.analysis.stepping import by_design

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData
    from perfkit.measuring.analysis.stability import Spread

LEVEL_ORIGIN = "by definition: a load that changes its level has no steady state as a whole"
WARMUP_ORIGIN = "MSER-5, White 1997: a minimum at the end of the allowed range was not seen to end"
STEPS_ORIGIN = "binary segmentation of block means, penalty 15 ln n of Barrett et al. 2017; 10 % by judgement"
DRIFT_ORIGIN = "Theil-Sen slope whose 99 % interval leaves out 0; 10 % by judgement"
WINDOWS_ORIGIN = "max / min of three windows as in NVIDIA's perf_analyzer, and their intervals apart"
OVERLOAD_ORIGIN = "judgement: a backlog that grows by 5 % of the arrivals, or 1 % turned away"
_TOO_FEW = "too few requests for blocks whose means could be compared"


def certify_steadiness(run: RunData, measured: Measured, found: Steadiness) -> list[Entry]:
    """Everything that a steady state is judged by."""
    dropped_s = sum(window.warmup_s for window in measured.windows)
    return [_level(run), _overload(run, measured), *certify_latencies(found, dropped_s)]


def certify_latencies(found: Steadiness, dropped_s: float) -> list[Entry]:
    """What latencies alone tell of a steady state; `dropped_s` of warm-up do not count among them."""
    return [_warmup(found, dropped_s), *_levels(found), *_windows(found)]


def _level(run: RunData) -> Entry:
    return _entry("one level", {"steps": len(run.steps) or 1}, (1, LEVEL_ORIGIN), "; ".join(by_design(run)))


def _entry(name: str, figures: Figures, limit: tuple[float | None, str], problem: str) -> Entry:
    status, costs, reason = held("unsteady", [problem] if problem else [])
    threshold, origin = limit
    return Entry(
        name=name, status=status, figures=figures, threshold=threshold, origin=origin, costs=costs, reason=reason
    )


def _overload(run: RunData, measured: Measured) -> Entry:
    if run.is_closed_loop or not len(measured.rows):
        return not_applicable("overload", OVERLOAD_ORIGIN, "unsteady", "holds for an open loop with requests only")
    problem = find_overload(run, measured) or ""
    return _entry("overload", {}, (MOST_BACKLOG_RATIO, OVERLOAD_ORIGIN), problem)


def _warmup(found: Steadiness, dropped_s: float) -> Entry:
    if found.warmup_ended is None:
        return not_applicable("warm-up", WARMUP_ORIGIN, "unsteady", "the rounds have too few requests to tell")
    return _entry("warm-up", {"dropped_s": dropped_s}, (None, WARMUP_ORIGIN), describe_warmup(found))


def _levels(found: Steadiness) -> list[Entry]:
    if found.trend == "unknown":
        return [
            not_applicable("steps", STEPS_ORIGIN, "unsteady", _TOO_FEW, LEAST_STEP_RATIO),
            not_applicable("drift", DRIFT_ORIGIN, "unsteady", _TOO_FEW, LEAST_STEP_RATIO),
        ]
    steps = {"steps": len(found.steps), "class": found.trend}
    drift = {"drift_ratio": found.drift_ratio or 0.0, "class": found.trend}
    return [
        _entry("steps", steps, (0, STEPS_ORIGIN), "; ".join(describe_steps(found))),
        _entry("drift", drift, (LEAST_STEP_RATIO, DRIFT_ORIGIN), describe_drift(found)),
    ]


def _windows(found: Steadiness) -> list[Entry]:
    if not found.spreads:
        return [not_applicable("windows", WINDOWS_ORIGIN, "unsteady", _TOO_FEW, MOST_SPREAD)]
    return [_window(spread) for spread in found.spreads]


def _window(spread: Spread) -> Entry:
    name = f"windows: {spread.quantity}"
    if spread.ratio is None:
        return not_applicable(name, WINDOWS_ORIGIN, "unsteady", "a window has no figure", MOST_SPREAD)
    return _entry(
        name, {"max_over_min": spread.ratio}, (spread.most if spread.most > 1 else None, WINDOWS_ORIGIN), spread.problem
    )
