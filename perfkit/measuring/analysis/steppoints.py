"""What are the figures of each step of a load that changes its level? Points, as a scan over the level would give."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.occupancy import in_flight_mean
from perfkit.measuring.analysis.recovery import recovery
from perfkit.measuring.analysis.scaling.knee import find_knee
from perfkit.measuring.analysis.stepping import StepSpan, moving_step, step_run, step_spans, varied_by
from perfkit.measuring.analysis.summary import summarise

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData

_SAID_ONCE = ("simulated", "settings", "certificate", "checks", "gpus", "rounds")


def step_points(run: RunData, whole: dict[str, Any]) -> dict[str, Any]:
    """`steps`, a point for each, and the `knee` over those at one level; {} for a load at one level.

    `whole` is the point of the run: when its instruments failed there is no result of any step either.
    """
    spans = step_spans(run)
    if not spans:
        return {}
    if not whole["valid"]:
        voided = {"grade": "void", "reasons": list(whole["reasons"])}
        return {"steps": [moving_step(run, span) | voided for span in spans], "knee": None}
    steps = [_point(run, span) if span.is_level else moving_step(run, span) for span in spans]
    return {"steps": steps, "knee": _knee(steps), **recovery(run, spans)}


def _point(run: RunData, span: StepSpan) -> dict[str, Any]:
    alone = step_run(run, span)
    point = summarise(alone, varied_by(run, span)).to_json()
    gauged = dataclasses.replace(alone, gauges=run.gauges)
    facts = {"name": span.name, "from_level": span.from_level, "to_level": span.to_level}
    kept = {name: value for name, value in point.items() if name not in _SAID_ONCE}
    return facts | kept | {"in_flight_mean": in_flight_mean(gauged, measure_windows(alone))}


def _knee(steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """As of a scan over the level; a level that comes twice, as before and after a spike, has none."""
    level = [step for step in steps if "varied" in step]
    values = [next(iter(step["varied"].values())) for step in level]
    return find_knee(level) if len(set(values)) == len(values) else None
