"""How much sooner is urgent work done when its stream has the higher priority, at which load?

Kernels of one length on average arrive at random at a device that runs one at a time and interrupts
none; a share of them is urgent. In virtual time, for use as a library: one load is one point of a
curve, and the figure at a single load says nothing about another.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.simulated.engine import EngineSpec, Operation, Stream
from perfkit.serving.devices.simulated.timeline import Timeline

_KERNEL = "kernel"
_URGENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class UrgencyPoint:
    """Mean latencies at one load: of the urgent kernels with their priority, and of all kernels where none has any."""

    load_ratio: float
    urgent_s: float
    equal_s: float

    @property
    def change_ratio(self) -> float:
        """By how much the priority changes their latency: -0.4 = it falls by two fifths."""
        return self.urgent_s / self.equal_s - 1


def urgency_point(
    load_ratio: float, *, urgent_ratio: float = 0.1, kernel_s: float = 0.01, kernels: int = 50_000, seed: int = 0
) -> UrgencyPoint:
    """One load: arrivals without memory, exponential lengths, the same ones with and without the priority."""
    rng = random.Random(seed)
    jobs, now_s = [], 0.0
    for _ in range(kernels):
        now_s += rng.expovariate(load_ratio / kernel_s)
        jobs.append((round(now_s * NS_PER_S), round(rng.expovariate(1 / kernel_s) * NS_PER_S), rng.random()))
    urgent_s = _mean_latency_s(jobs, urgent_ratio, is_of_urgent=True)
    equal_s = _mean_latency_s(jobs, 0.0, is_of_urgent=False)  # of equals the urgent ones wait as long as all
    return UrgencyPoint(load_ratio=load_ratio, urgent_s=urgent_s, equal_s=equal_s)


def expected_change_ratio(load_ratio: float, urgent_ratio: float = 0.1) -> float:
    """The same by queueing theory (Cobham 1954, exponential lengths), with 1 as the mean length.

    At load r a kernel waits for the rest of the running one, r, and for what is ahead of it: first come first
    served W = r / (1 - r); urgent ones only for their own kind, W = r / (1 - r · share of the urgent).
    """
    equal = load_ratio / (1 - load_ratio)
    urgent = load_ratio / (1 - load_ratio * urgent_ratio)
    return (urgent + 1) / (equal + 1) - 1


def _mean_latency_s(jobs: list[tuple[int, int, float]], urgent_ratio: float, is_of_urgent: bool) -> float:
    timeline = Timeline({_KERNEL: EngineSpec()})
    counted: list[tuple[int, Operation]] = []
    for arrived_ns, length_ns, draw in jobs:
        is_urgent = draw < urgent_ratio
        operation = timeline.submit(Stream(_URGENT if is_urgent else 0), _KERNEL, length_ns, arrived_ns)
        if is_urgent == is_of_urgent:
            counted.append((arrived_ns, operation))
    while any(operation.ended_ns is None for _, operation in counted[-1:]):
        timeline.step()
    return sum((operation.ended_ns or 0) - arrived_ns for arrived_ns, operation in counted) / len(counted) / NS_PER_S
