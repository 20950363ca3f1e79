"""When may a load end because enough is known? It looks at instants that were fixed before it started."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.latency import quantile
from perfkit.measuring.analysis.precision import Goal, judge_precision, settled
from perfkit.measuring.experiment import RUNS_FOLDER, Run, certify, instruments, plan_together, record_together, save
from perfkit.measuring.load.loops import ClosedLoop, Load
from perfkit.measuring.load.merging import read_all_samples
from perfkit.measuring.phase import Progress, Watch
from perfkit.measuring.service import Service
from perfkit.records import EndState


class Lookout:
    """Ends a load when the goal is reached at a look; between looks it only passes the progress on. One thread."""

    def __init__(self, goal: Goal, load: Load, watch: Watch) -> None:
        self._goal = goal
        self._users = load.concurrency if isinstance(load, ClosedLoop) else 0
        self._watch = watch
        self.looks = 0
        self.is_reached = False

    def __call__(self, progress: Progress) -> bool:
        """Whether the load may end."""
        wants_end = bool(self._watch(progress))
        due = sum(progress.elapsed_s >= instant_s for instant_s in self._goal.looks_s)
        if due > self.looks and not self.is_reached:
            self.looks = due
            self.is_reached = self._is_enough(read_latencies(progress.samples), progress.elapsed_s)
        return wants_end or self.is_reached

    def _is_enough(self, latency_s: Floats, elapsed_s: float) -> bool:
        measured = settled(latency_s, self._users)
        goal = self._goal
        found = quantile(measured, [len(measured)], goal.p, elapsed_s, goal.confidence)
        return judge_precision(goal, found, elapsed_s).is_reached


def read_latencies(samples: Sequence[Path]) -> Floats:
    """Latencies in seconds of what has ended so far, in the order of the schedule; a time-out is infinite."""
    written = [path for path in samples if path.exists()]
    if not written:
        return np.array([])
    rows = read_all_samples(written)
    latency_s = (rows["received_ns"] - rows["scheduled_ns"]) / NS_PER_S
    latency_s = np.where(rows["outcome"] == int(EndState.TIMED_OUT), np.inf, latency_s)
    counted = (rows["outcome"] == int(EndState.OK)) | (rows["outcome"] == int(EndState.TIMED_OUT))
    order = np.argsort(rows["scheduled_ns"], kind="stable")
    return np.asarray(latency_s[order][counted[order]], dtype=np.float64)


def measure_until(
    service: Service, loads: Mapping[str, Load], goal: Goal, out: Path | None, watch: Watch
) -> dict[str, Run]:
    """Apply loads together until the first one's goal is reached or its last look is over; archive a run for each.

    The first run's certificate says under "precision" whether the goal was reached, else how long it would take.
    Raises as `measure`.
    """
    plan = plan_together(service, loads, goal.looks_s[-1])
    lookout = Lookout(goal, plan.load, watch)
    first, *others = record_together(service, plan, instruments(service), lookout)
    told = {"goal": dataclasses.asdict(goal), "looks": lookout.looks}
    manifest = dataclasses.replace(first.manifest, further={**first.manifest.further, "until": told})
    contents = [dataclasses.replace(first, manifest=manifest), *others]
    return {name: save(certify(one, {}), out or RUNS_FOLDER) for name, one in zip(loads, contents, strict=True)}
