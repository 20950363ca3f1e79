"""Which thread runs on which cores? A pure plan from the machine's topology and what is wanted.

Whole physical cores come first, their second hardware threads after all of them: two workers on one
physical core share its arithmetic. What is left over runs everything else, away from the workers'
physical cores where there are others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """A logical processor, and the physical core that it is a hardware thread of."""

    number: int
    package: int
    core: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The processors of each worker, and of everything else."""

    workers: tuple[tuple[int, ...], ...]
    background: tuple[int, ...]

    @property
    def is_apart(self) -> bool:
        """Whether no worker shares a processor with another or with the background."""
        taken = [number for cpus in self.workers for number in cpus]
        return len(taken) == len(set(taken)) and not set(taken) & set(self.background)


def plan_pinning(cpus: Iterable[Cpu], usable: int, workers: int, threads_each: int) -> Plan:
    """Give `threads_each` processors to each worker, of the `usable` best; where they run short, share them in turn."""
    best = physical_first(cpus)[:usable]
    wanted = workers * threads_each
    numbers = [cpu.number for cpu in best]
    shares = tuple(_share(numbers, worker * threads_each, threads_each) for worker in range(workers))
    if wanted >= len(best):
        return Plan(workers=shares, background=tuple(sorted(numbers)))
    return Plan(workers=shares, background=_background(best[:wanted], best[wanted:]))


def physical_first(cpus: Iterable[Cpu]) -> list[Cpu]:
    """One hardware thread of every physical core, then the second of each, and so on."""
    seen: dict[tuple[int, int], int] = {}
    ranked = []
    for cpu in sorted(cpus, key=lambda cpu: cpu.number):
        place = (cpu.package, cpu.core)
        ranked.append((seen.setdefault(place, 0), cpu.package, cpu.number, cpu))
        seen[place] += 1
    return [cpu for *_, cpu in sorted(ranked, key=lambda entry: entry[:3])]


def _share(numbers: Sequence[int], first: int, count: int) -> tuple[int, ...]:
    return tuple(sorted({numbers[(first + step) % len(numbers)] for step in range(min(count, len(numbers)))}))


def _background(taken: Sequence[Cpu], left: Sequence[Cpu]) -> tuple[int, ...]:
    busy = {(cpu.package, cpu.core) for cpu in taken}
    elsewhere = [cpu for cpu in left if (cpu.package, cpu.core) not in busy]
    return tuple(sorted(cpu.number for cpu in elsewhere or left))
