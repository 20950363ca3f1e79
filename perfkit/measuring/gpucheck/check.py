"""What is one check: its claims, its time limit, how it measures and how it judges?

`measure` touches the device and gives figures; `judge` is pure and turns figures into lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.line import Claim, Line


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: 1 = as the specification says; tests take less of it."""

    share: float = 1.0

    def count(self, full: int, least: int = 4) -> int:
        """So many repetitions."""
        return max(least, round(full * self.share))

    def seconds(self, full: float, least: float = 0.25) -> float:
        """So long."""
        return max(least, full * self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One row of the specification's table; several claims may hang on one measurement."""

    number: int
    name: str
    cap_s: float
    claims: tuple[Claim, ...]
    measure: Callable[[Bench, Effort], Any]
    judge: Callable[[Any], Sequence[Line]]
