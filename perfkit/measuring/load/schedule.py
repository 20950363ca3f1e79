"""When does each request leave, and which payload does it carry? Pure, and decided before the start.

The same seed gives the same schedule. Think times are the one thing drawn during a run, since they
start when a reply comes; their sequence is seeded too.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator

from perfkit.clock import NS_PER_S
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop

_ORDER_LENGTH = 4096  # few payloads are shuffled anew this many times over before the order repeats


def arrival_offsets(load: OpenLoop, seconds: float, seed: int) -> array[int]:
    """Nanoseconds after the start at which each request of an open loop is due; the first is not at 0."""
    end_ns = round(seconds * NS_PER_S)
    if load.arrivals == "constant":
        count = int(seconds * load.rate_rps)
        instants = (round(number * NS_PER_S / load.rate_rps) for number in range(1, count + 1))
        return array("q", (instant for instant in instants if instant < end_ns))
    return array("q", _poisson_offsets(load.rate_rps / NS_PER_S, end_ns, random.Random(f"arrivals {seed}")))


def _poisson_offsets(rate_per_ns: float, end_ns: int, source: random.Random) -> Iterator[int]:
    at_ns = source.expovariate(rate_per_ns)
    while at_ns < end_ns:
        yield int(at_ns)
        at_ns += source.expovariate(rate_per_ns)


def payload_order(count: int, seed: int) -> array[int]:
    """Indices of payloads in the order of use, to be repeated: whole shuffles, so each comes equally often."""
    source = random.Random(f"payloads {seed}")
    order = array("q")
    while len(order) < _ORDER_LENGTH:
        shuffled = list(range(count))
        source.shuffle(shuffled)
        order.extend(shuffled)
    return order


def think_times_ns(load: ClosedLoop, seed: int) -> Iterator[int]:
    """The pauses that users make after a reply, in the order in which they are needed; endless."""
    mean_ns = load.think_time_s * NS_PER_S
    source = random.Random(f"think {seed}")
    while True:
        yield round(source.expovariate(1 / mean_ns) if mean_ns and load.think == "exponential" else mean_ns)


def first_thoughts_ns(load: ClosedLoop, seed: int) -> list[int]:
    """How long after the start each user sends first: spread over one think time, else they march in step."""
    source = random.Random(f"first {seed}")
    return [round(source.uniform(0, load.think_time_s) * NS_PER_S) for _ in range(load.concurrency)]
