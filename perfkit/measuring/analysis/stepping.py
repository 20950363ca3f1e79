"""What did each step of a load that changes its level come to?

A run through several levels has no steady state, so it gets no P99 of its own and the grade says why. Each
step at one level is judged like a run of its own: its requests, its own warm-up cut off, its grade. A
step on the way from one level to another keeps its counts only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.instants import relative_ns
from perfkit.measuring.analysis.warmup import OK

if TYPE_CHECKING:
    from perfkit.measuring.analysis.rundata import RunData


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepSpan:
    """One step in all rounds: its name and levels, and the instants between which it ran in each round."""

    name: str
    from_level: float
    to_level: float
    rounds: tuple[Mapping[str, Any], ...]

    @property
    def is_level(self) -> bool:
        """Whether the level stayed the same."""
        return self.from_level == self.to_level


def by_design(run: RunData) -> tuple[str, ...]:
    """Why a load that changes its level on purpose has no steady state; nothing for any other."""
    if not run.steps:
        return ()
    levels = {level: None for step in run.steps for level in (step["from_level"], step["to_level"])}
    unit = "users" if run.is_closed_loop else "req/s"
    shown = ", ".join(f"{level:g}" for level in levels)
    return (f"the load changed on purpose ({run.load.get('profile')}: {shown} {unit}); each step is judged apart",)


def step_spans(run: RunData) -> list[StepSpan]:
    """The steps in order, each over all rounds."""
    return [
        StepSpan(
            name=str(step["name"]),
            from_level=float(step["from_level"]),
            to_level=float(step["to_level"]),
            rounds=tuple(_round_span(report, place) for report in run.generator_reports),
        )
        for place, step in enumerate(run.steps)
    ]


def _round_span(report: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    """A load that was stopped early has steps that ended with it, or never began."""
    step, last_ns = report["steps"][place], int(report["ended_ns"])
    started_ns, ended_ns = (min(int(step[name]), last_ns) for name in ("started_ns", "ended_ns"))
    return {"index": report["round"], "started_ns": started_ns, "ended_ns": ended_ns}


def step_run(run: RunData, span: StepSpan) -> RunData:
    """A step at one level as a run of its own: the requests scheduled in it, under a load at that level.

    The whole run keeps what cannot be told apart: counters, gauges and the generator's report.
    """
    load = dict(run.load) | {"profile": "steady", **varied_by(run, span)}
    return dataclasses.replace(
        run,
        requests=run.requests[_inside(run, span)],
        rounds=span.rounds,
        gauges=(),
        counters=(),
        generator_reports=(),
        loads_beside=run.loads_beside + 1,  # the steps around it, whose last requests shared its first batches
        load=load,
    )


def varied_by(run: RunData, span: StepSpan) -> dict[str, float]:
    """The load's field that tells a step from its neighbours, with the step's level; users are whole."""
    if run.is_closed_loop:
        return {"concurrency": math.ceil(span.to_level)}
    return {"rate_rps": span.to_level}


def _inside(run: RunData, span: StepSpan) -> Any:
    scheduled = relative_ns(run.requests, "scheduled", run.started_ns)
    numbers = run.requests["round"].to_numpy(dtype="float64", na_value=-1.0)
    kept = scheduled != scheduled  # none yet
    for entry in span.rounds:
        start, end = (float(entry[name] - run.started_ns) for name in ("started_ns", "ended_ns"))
        kept |= (numbers == entry["index"]) & (scheduled >= start) & (scheduled < end)
    return kept


def moving_step(run: RunData, span: StepSpan) -> dict[str, Any]:
    """What can be said of a step whose level changes: how many requests, how they ended, and why no more."""
    rows = run.requests[_inside(run, span)]
    good = int((rows["end_state"] == OK).sum())
    seconds = sum(entry["ended_ns"] - entry["started_ns"] for entry in span.rounds) / NS_PER_S
    levels = f"{span.from_level:g} to {span.to_level:g}"
    return {
        "name": span.name,
        "from_level": span.from_level,
        "to_level": span.to_level,
        "requests": len(rows),
        "succeeded": good,
        "seconds": seconds,
        "grade": "unsteady",
        "reasons": [f"the level went from {levels}, so that there was no steady state"],
    }
