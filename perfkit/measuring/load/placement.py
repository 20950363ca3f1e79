"""On which cores and with which priority does the generator run, and what was refused?"""

from __future__ import annotations

import dataclasses
import os

from perfkit.measuring.load.spec import LoadSpec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the process ended up, as read back from the system."""

    usable_cores: int
    cpus: tuple[int, ...]
    nice: int
    refused: tuple[str, ...]


def place_process(spec: LoadSpec) -> Placement:
    """Move this process to the cores and the priority asked for; a refusal is reported, not fatal."""
    usable_cores = spec.usable_cores or len(os.sched_getaffinity(0))
    refused = []
    if spec.cpus is not None:
        try:
            os.sched_setaffinity(0, spec.cpus)
        except OSError as error:
            refused.append(f"cores {', '.join(map(str, spec.cpus))}: {error.strerror}")
    if spec.nice is not None:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, spec.nice)
        except OSError as error:
            refused.append(f"priority {spec.nice}: {error.strerror}")
    return Placement(
        usable_cores=usable_cores,
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        refused=tuple(refused),
    )
