"""Which part of a load does one of several generator processes take? Every n-th user, every n-th request.

All processes compute the whole schedule from the same seed and take turns in it, so that together they do
exactly what one would have done.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The place of one process among `count`, and the seed that they have in common."""

    seed: int = 0
    index: int = 0
    count: int = 1

    def of(self, everything: Sequence[int]) -> Sequence[int]:
        """This process's members of a sequence: the shares of all are disjoint, and together the whole."""
        return everything if self.count == 1 else everything[self.index :: self.count]

    def of_cycle(self, cycle: Sequence[int]) -> Sequence[int]:
        """The same of a sequence that repeats without end; this process's members repeat as well."""
        if self.count == 1:
            return cycle
        return array("q", (cycle[(self.index + turn * self.count) % len(cycle)] for turn in range(len(cycle))))

    def of_amount(self, amount: int) -> int:
        """This process's part of a number of like things, such as connections; the parts add up to it."""
        return amount // self.count + (self.index < amount % self.count)

    def own_seed(self, purpose: str) -> str:
        """A seed for what is drawn during the run and so cannot be shared; one process alone draws as always."""
        return f"{purpose} {self.seed}" + (f" part {self.index}" if self.count > 1 else "")
