"""How long does one piece of simulated work take, given its mean and its scatter?

A coefficient of variation of 0 is the mean itself, 1 the exponential distribution, and anything
else a gamma distribution with that mean and that coefficient: shape 1 / cv², scale mean · cv².
"""

from __future__ import annotations

import random


class ServiceTimes:
    """Seeded draws. Not thread-safe: the device draws under the lock that guards its timeline."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def draw_ns(self, mean_ns: float, cv: float) -> int:
        """One duration; the mean over many draws is `mean_ns`."""
        if cv == 0.0 or mean_ns == 0.0:
            return round(mean_ns)
        if cv == 1.0:
            return int(self._rng.expovariate(1.0) * mean_ns)
        shape = 1.0 / (cv * cv)
        return int(self._rng.gammavariate(shape, mean_ns / shape))
