"""How many requests in flight, threads and queue places does a load need? The formulas of the articles, as functions.

Each is a first guess by its own author's word, to be settled by measuring; several contradict each other.
`Seed` numbers are the articles that perfkit was written for; a formula that an article took from the literature
names that as well. Symbols: X requests a second, W seconds that one request takes, N cores.
"""

from __future__ import annotations

import dataclasses
import math

from perfkit.errors import ConfigError

LITTLE = "Little 1961"
GOETZ = "Goetz et al., Java Concurrency in Practice, 2006, section 8.2"
CLIENT_MARGIN_RATIO = 0.3
POOL_BUFFER = 1.5
LEAST_CEILING, MOST_CEILING = 10, 20
SOAK_LOW_RATIO, SOAK_HIGH_RATIO = 0.7, 0.8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """One rule: what it sizes, as it is written, and where it stands."""

    name: str
    text: str
    source: str
    unit: str


IN_FLIGHT = Formula(name="in flight", text="X W", source=f"seed 001, section 4.1; {LITTLE}", unit="requests in flight")
CLIENT_THREADS = Formula(
    name="client threads", text="1.3 X W", source="seed 001, section 4.1: 300 * 0.15 = 45, and 30 % more", unit="users"
)
USER_RATE = Formula(
    name="rate of the users",
    text="users / (W + Z)",
    source="seed 001, section 2.4: 100 / 0.2 s = 500; interactive law, Denning and Buzen 1978",
    unit="requests a second",
)
POOL_SIZE = Formula(
    name="pool size", text="1.5 X W", source="seed 001, section 4.2: 300 * 0.15 * 1.5, rounded to 64", unit="threads"
)
QUEUE_DEPTH = Formula(
    name="queue depth", text="X * wait", source=f"seed 000, section 4.3: 200 * 0.1 s = 20; {LITTLE}", unit="places"
)
COMPUTE_THREADS = Formula(
    name="threads, computing", text="N + 1", source="seeds 000 4.1, 001 4.2, 003 1; " + GOETZ, unit="threads"
)
DOUBLED_THREADS = Formula(
    name="threads, doubled", text="2 N", source="seed 000, section 3.1, for a thread pool in Python", unit="threads"
)
IO_THREADS = Formula(name="threads, I/O", text="2 N + 1", source="seed 001, section 4.2", unit="threads")
BLOCKING_THREADS = Formula(
    name="threads, blocking", text="N (1 + wait / compute)", source="seed 000, section 4.1; " + GOETZ, unit="threads"
)
POOL_CEILING = Formula(
    name="most threads", text="10 N to 20 N", source="seed 001, section 4.2, for Java", unit="threads"
)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(f"{name} is {value:g}; it takes a number, 0 or more")


def in_flight(rate_rps: float, time_s: float) -> float:
    """Requests in the service at once: rate times time."""
    _positive(rate_rps=rate_rps, time_s=time_s)
    return rate_rps * time_s


def client_threads(rate_rps: float, time_s: float) -> int:
    """Users of a closed loop that reach a rate: those in flight, and 30 % more for the client's own overhead."""
    return _up(in_flight(rate_rps, time_s) * (1 + CLIENT_MARGIN_RATIO))


def user_rate(users: float, time_s: float, think_s: float = 0.0) -> float:
    """The most requests a second that users send who wait for each reply, and think in between."""
    _positive(users=users, time_s=time_s, think_s=think_s)
    if time_s + think_s <= 0:
        raise ConfigError("time_s and think_s are both 0; a turn of a user takes some time")
    return users / (time_s + think_s)


def pool_size(rate_rps: float, time_s: float) -> int:
    """Threads of a pool of which each holds a request: those in flight, times 1.5 as a buffer."""
    return _up(in_flight(rate_rps, time_s) * POOL_BUFFER)


def queue_depth(rate_rps: float, wait_s: float) -> int:
    """Places of a queue in which nobody waits longer than is acceptable."""
    return _up(in_flight(rate_rps, wait_s))


def compute_threads(cores: int) -> int:
    """Threads for work that only computes."""
    return _cores(cores) + 1


def doubled_threads(cores: int) -> int:
    """Threads that block in calls of a framework, in Python."""
    return 2 * _cores(cores)


def io_threads(cores: int) -> int:
    """Threads for work that mostly waits for I/O."""
    return 2 * _cores(cores) + 1


def blocking_threads(cores: int, wait_s: float, compute_s: float) -> float:
    """Threads that keep the cores busy when each waits for part of the time."""
    _positive(wait_s=wait_s)
    if not compute_s > 0:
        raise ConfigError(f"compute_s is {compute_s:g}; it takes a number above 0")
    return _cores(cores) * (1 + wait_s / compute_s)


def pool_ceiling(cores: int) -> tuple[int, int]:
    """Between these numbers of threads a pool stops paying."""
    return LEAST_CEILING * _cores(cores), MOST_CEILING * _cores(cores)


def soak_levels(stable: float) -> tuple[float, float]:
    """Between which levels a soak runs, from the load that was stable (seed 001, section 2.3)."""
    _positive(stable=stable)
    return SOAK_LOW_RATIO * stable, SOAK_HIGH_RATIO * stable


def _up(value: float) -> int:
    """The next whole number; 45.000000001 is 45."""
    return math.ceil(round(value, 9))


def _cores(cores: int) -> int:
    if cores < 1:
        raise ConfigError(f"cores is {cores}; it takes a whole number, 1 or more")
    return cores
