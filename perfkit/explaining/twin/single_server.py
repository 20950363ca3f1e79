"""What latencies does a queue with one server give, whose true percentiles are known?

In virtual time, and so exact and fast: a way to see how far a measurement that is too short lies from the
truth, without the noise of a machine. Arrivals are Poisson.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from perfkit.errors import ConfigError

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SingleServer:
    """M/M/1: exponential times of service with a mean of `service_s`, at a share `load_ratio` of the capacity."""

    load_ratio: float
    service_s: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.load_ratio < 1 or self.service_s <= 0:
            raise ConfigError(
                f"load_ratio is {self.load_ratio:g} and service_s {self.service_s:g}; "
                "the first lies between 0 and 1 (else no queue is steady), the second above 0"
            )

    @property
    def rate_rps(self) -> float:
        """Arrivals a second."""
        return self.load_ratio / self.service_s

    @property
    def mean_s(self) -> float:
        """Mean latency."""
        return self.service_s / (1 - self.load_ratio)

    @property
    def relaxation_s(self) -> float:
        """How long the queue remembers: S / (1 - sqrt(rho))^2."""
        return float(self.service_s / (1 - math.sqrt(self.load_ratio)) ** 2)

    def quantile_s(self, p: float) -> float:
        """The true latency quantile: the latency of M/M/1 is exponential."""
        return -self.mean_s * math.log(1 - p)

    def requests_in(self, seconds: float) -> int:
        """How many requests come in that time, on average."""
        return round(self.rate_rps * seconds)

    def latencies(self, requests: int, seed: int, *, runs: int = 1, from_empty: bool = False) -> Floats:
        """Latencies in seconds, one row a run and one column a request, in the order of arrival.

        The queue is steady from the first request on, or found empty by it. Lindley's recursion, all at once: the
        wait is how far the path of service minus gap lies above its lowest point so far.
        """
        chance = np.random.default_rng(seed)
        service = chance.exponential(self.service_s, (runs, requests))
        gap = chance.exponential(1 / self.rate_rps, (runs, requests))
        path = np.zeros((runs, requests))
        np.cumsum(service[:, :-1] - gap[:, 1:], axis=1, out=path[:, 1:])
        # The work that the first request of a steady queue finds: none, or exponential as the latency itself.
        found = np.where(chance.random(runs) < self.load_ratio, chance.exponential(self.mean_s, runs), 0.0)
        before = np.zeros(runs) if from_empty else found
        waited: Floats = path + before[:, None] - np.minimum(np.minimum.accumulate(path + before[:, None], axis=1), 0.0)
        return waited + service
