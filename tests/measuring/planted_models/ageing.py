"""Models whose speed changes with age: one warms up for long, one tires. Each takes milliseconds a call."""

from __future__ import annotations

import math
import threading

_CALLS = 1_000.0  # a run of the tests has about so many
_SHORTEST_S = 0.004


class _Ageing:
    """Takes a time that depends on how many calls came before."""

    def __init__(self) -> None:
        self._seen = 0

    def predict(self, inputs):
        self._seen += 1
        threading.Event().wait(_SHORTEST_S * self.factor(self._seen / _CALLS))
        return inputs

    def factor(self, age: float) -> float:
        """How much longer a call takes at an age of 0 to about 1."""
        raise NotImplementedError


class Cold(_Ageing):
    """Three times as slow at first, and still half again as slow when 1,000 calls are over."""

    def factor(self, age: float) -> float:
        return 1 + 2 * math.exp(-1.4 * age)


class Tiring(_Ageing):
    """Half again as slow after 1,000 calls."""

    def factor(self, age: float) -> float:
        return 1 + 0.5 * age
