"""What does a generator say about itself after a phase of load?

Enough to judge whether the numbers may be believed: what was scheduled and how it ended, how late
the generator was by its own doing, and how much CPU it used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from perfkit.clock import NS_PER_S
from perfkit.measuring.load.engine import Engine
from perfkit.measuring.load.loops import changes_level
from perfkit.measuring.load.placement import Placement
from perfkit.measuring.load.spec import LoadSpec

REPORT_SCHEMA = 1


def describe_phase(spec: LoadSpec, engine: Engine, placement: Placement) -> dict[str, Any]:
    """The report as a JSON document. `wall_s` and `cpu_s` reach from the start to the last reply."""
    wall_s = (engine.drained_ns - engine.started_ns) / NS_PER_S
    cpu_s = engine.cpu_ns / NS_PER_S
    lateness = engine.desk.lateness
    recorder = engine.recorder
    return {
        "schema": REPORT_SCHEMA,
        "loop": spec.load.loop,
        "started_ns": engine.started_ns,
        "ended_ns": engine.ended_ns,
        "drained_ns": engine.drained_ns,
        "was_stopped": engine.was_stopped,
        "scheduled": engine.desk.scheduled,
        "sent": recorder.sent,
        "held": engine.driver.held,
        "outcomes": recorder.outcomes,
        "errors": recorder.errors,
        "faults": recorder.faults,
        "retries": _retries(engine),
        "lateness_p50_s": lateness.quantile_s(0.50),
        "lateness_p99_s": lateness.quantile_s(0.99),
        "lateness_max_s": lateness.max_s,
        "lateness_counts": lateness.counts() if spec.load.generators > 1 else None,
        **_rates(spec, engine),
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "cpu_ratio": cpu_s / wall_s / placement.usable_cores if wall_s else None,
        "core_ratio": cpu_s / wall_s if wall_s else None,
        "usable_cores": placement.usable_cores,
        "cpus": list(placement.cpus),
        "nice": placement.nice,
        "not_placed": list(placement.refused),
        "steps": _steps(spec, engine),
        **engine.script.facts,
    }


def _steps(spec: LoadSpec, engine: Engine) -> list[dict[str, Any]]:
    """When each step of a profile ran and at which level; empty for a load at one level."""
    if not changes_level(spec.load):
        return []
    length_ns = spec.seconds * NS_PER_S
    return [
        {
            "name": step.name,
            "started_ns": engine.started_ns + round(step.start_ratio * length_ns),
            "ended_ns": engine.started_ns + round(step.end_ratio * length_ns),
            "from_level": step.from_level,
            "to_level": step.to_level,
        }
        for step in spec.load.steps
    ]


def _retries(engine: Engine) -> dict[str, Any] | None:
    """What retrying did: attempts sent again by the error before, and what the budget and the throttle kept back."""
    resends = engine.resends
    if resends is None:
        return None
    return {
        "retried": resends.policy.retried,
        "errors": engine.recorder.retried,
        "over_budget": resends.policy.over_budget,
        "held_back": resends.throttle.held_back if resends.throttle else 0,
    }


def _rates(spec: LoadSpec, engine: Engine) -> dict[str, float | None]:
    """Open loop: the rate asked for, the rate at which requests were really taken up, and their ratio.

    A generator that falls behind takes its last request up after the end. A closed loop offers no
    rate: absent.
    """
    window_ns = engine.ended_ns - engine.started_ns
    scheduled = engine.desk.scheduled
    if spec.load.loop == "closed" or not scheduled or not window_ns:
        return {"offered_rps": None, "achieved_rps": None, "achieved_ratio": None}
    taken_up_ns = max(window_ns, engine.desk.last_taken_up_ns - engine.started_ns)
    return {
        "offered_rps": scheduled / window_ns * NS_PER_S,
        "achieved_rps": scheduled / taken_up_ns * NS_PER_S,
        "achieved_ratio": window_ns / taken_up_ns,
    }


def write_report(report: dict[str, Any], path: Path) -> None:
    """Write the report so that a reader sees all of it or none."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))
    unfinished.replace(path)
