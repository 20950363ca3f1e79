"""How do the threads of a pipeline come to the cores that were planned for them, and back again?

A thread moves itself: its mask is its own, and what it starts inherits it (a library's threads too, which
is why a worker moves before its first call). With the policy off nothing is touched, unless an earlier
setting has moved threads: then they are given back what the process had when it started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfkit.quota import count_usable_cores, find_groups, read_quota_cores
from perfkit.serving.scheduling.pinning import Cpu, Plan, plan_pinning
from perfkit.settings.server import ServerSettings

_ROOT = Path("/")


class Cores:
    """The cores of the process, from before anything was pinned. Shared by all pipelines, one after the other."""

    def __init__(self, root: Path = _ROOT) -> None:
        self.allowed = tuple(sorted(os.sched_getaffinity(0)))
        self.usable = count_usable_cores(len(self.allowed), read_quota_cores(find_groups(root)))
        self.cpus = [read_cpu(number, root) for number in self.allowed]
        self.has_pinned = False  # from then on even a setting without pins has to say where threads run


class Pins:
    """Where the threads of one pipeline run. Decided before its threads start; any of them asks."""

    def __init__(self, cores: Cores, plan: Plan | None, workers: Sequence[str]) -> None:
        self._by_worker = dict(zip(workers, plan.workers, strict=True)) if plan is not None else {}
        everything = cores.allowed if cores.has_pinned else None
        self.background = plan.background if plan is not None else everything

    def worker(self, name: str) -> tuple[int, ...] | None:
        """The cores of a worker; None = as they are."""
        return self._by_worker.get(name, self.background)


def decide(settings: ServerSettings, cores: Cores, workers: Sequence[str], replica: int) -> Pins:
    """The pins of a pipeline with these workers; each replica has its own part of the cores."""
    if settings.pinning.policy == "none":
        return Pins(cores, None, workers)
    cores.has_pinned = True
    count = len(workers)
    whole = plan_pinning(cores.cpus, cores.usable, count * settings.replicas, settings.intra_op_threads)
    part = Plan(workers=whole.workers[count * replica : count * (replica + 1)], background=whole.background)
    return Pins(cores, part, workers)


def move_to(cpus: tuple[int, ...] | None) -> None:
    """Move the calling thread; None = leave it where it is."""
    if cpus is not None:
        os.sched_setaffinity(0, cpus)


def cpus_of(thread_id: int | None) -> list[int] | None:
    """Where a thread, or the main thread of a process, may run by the kernel's own word; None when it has gone."""
    try:
        return sorted(os.sched_getaffinity(thread_id)) if thread_id else None
    except OSError:
        return None


def read_cpu(number: int, root: Path = _ROOT) -> Cpu:
    """A processor's place on the machine; where the kernel does not tell, a core of its own."""
    folder = root / f"sys/devices/system/cpu/cpu{number}/topology"
    facts: dict[str, Any] = {}
    for name, file, unknown in (("package", "physical_package_id", 0), ("core", "core_id", number)):
        try:
            facts[name] = int((folder / file).read_text())
        except (OSError, ValueError):
            facts[name] = unknown
    return Cpu(number=number, **facts)
