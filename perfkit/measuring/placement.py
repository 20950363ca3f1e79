"""Which process runs on which core? A recorded setting, not an accident.

A simulated or no-op device needs no core of its own, so server and generator get one each. A model
that computes on the CPU gets all of them; generator and samplers share these at a higher priority.
"""

from __future__ import annotations

import dataclasses
import os

from perfkit.settings.server import is_light

_GENERATOR_NICE = -10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Cores per process (None = all usable), and the generator's niceness."""

    server_cpus: tuple[int, ...] | None
    generator_cpus: tuple[int, ...] | None
    generator_nice: int | None


def place(model: str) -> Placement:
    """Where the processes of a measurement of this model run on this machine."""
    cores = sorted(os.sched_getaffinity(0))
    if is_light(model) and len(cores) > 1:
        return Placement(server_cpus=tuple(cores[:-1]), generator_cpus=(cores[-1],), generator_nice=None)
    return Placement(server_cpus=None, generator_cpus=None, generator_nice=_GENERATOR_NICE)
