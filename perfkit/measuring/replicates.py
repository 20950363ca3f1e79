"""What does the same measurement give again? Several runs, each with a fresh server process where perfkit starts it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from perfkit import fields
from perfkit.measuring.analysis.precision import Goal
from perfkit.measuring.experiment import Run, measure_together
from perfkit.measuring.load.loops import Load
from perfkit.measuring.phase import Watch
from perfkit.measuring.service import Service
from perfkit.measuring.until import measure_until

_SEEDS_PER_REPLICATE = 100_000  # far above what rounds and streams add


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What each replicate applies: loads by name, for how long or until what is known, and where its runs go."""

    loads: Mapping[str, Load]
    seconds: float
    goal: Goal | None = None
    out: Path | None = None


def measure_trial(service: Service, trial: Trial, watch: Watch) -> dict[str, Run]:
    """One run for each load of the trial, by its name; raises as `measure`."""
    if trial.goal is not None:
        return measure_until(service, trial.loads, trial.goal, trial.out, watch)
    return measure_together(service, trial.loads, trial.seconds, trial.out, watch)


def measure_replicates(start: Callable[[], Service], trial: Trial, count: int, watch: Watch) -> list[dict[str, Run]]:
    """The trial so many times; `start` gives the service anew each time, and each replicate has a seed of its own.

    A service that was launched ends with its replicate. Raises as `measure`.
    """
    found = []
    for number in range(count):
        seeded = {name: reseeded(load, number) for name, load in trial.loads.items()}
        with start() as service:
            found.append(measure_trial(service, dataclasses.replace(trial, loads=seeded), watch))
    return found


def reseeded(load: Load, number: int) -> Load:
    """The same load with arrivals and payloads drawn anew; number 0 leaves it as it is."""
    return fields.replace(load, {"seed": load.seed + number * _SEEDS_PER_REPLICATE})
