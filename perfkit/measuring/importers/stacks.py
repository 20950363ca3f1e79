"""Which functions hold the most of a profile, alone and with all that they called?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from perfkit.measuring.importers.imported import Profile, Weight
from perfkit.measuring.importers.stacktree import TreeBuilder

TOP = 30
_NAME_LIMIT = 200_000  # distinct functions; addresses without symbols can be endless
Key = TypeVar("Key")
OTHER = "(other functions)"


class StackCounter:
    """Adds up weighted stacks; memory grows with the number of distinct functions only."""

    def __init__(self) -> None:
        self._own: defaultdict[str, float] = defaultdict(float)
        self._total: defaultdict[str, float] = defaultdict(float)
        self._threads: defaultdict[str, float] = defaultdict(float)
        self._count: Counter[str] = Counter()
        self._tree = TreeBuilder()
        self.samples, self.empty, self.weight = 0, 0, 0.0
        self.least, self.most = float("inf"), 0.0

    def add(self, frames: Sequence[str], weight: float, thread: str = "") -> None:
        """One stack, root first; a function counts once however deep it recurs. An empty one only weighs."""
        self.samples += 1
        self.weight += weight
        self.least, self.most = min(self.least, weight), max(self.most, weight)
        if thread:
            self._threads[self._known(thread, self._threads)] += weight
        inner = frames[1:] if thread and frames and frames[0] == thread else frames
        self._tree.add(thread or "all threads", inner, weight)
        if not frames:
            self.empty += 1
            return
        for name in {self._known(frame, self._total) for frame in frames}:
            self._total[name] += weight
        leaf = self._known(frames[-1], self._total)
        self._own[leaf] += weight
        self._count[leaf] += 1

    def profile(self, name: str, unit: str, states: Mapping[str, int] | None = None) -> Profile:
        """The heaviest by their own weight; the whole may be more than the time that passed, threads run at once."""
        heavy = [one for one, _ in heaviest_first(self._own)[:TOP]]
        wide = [one for one, _ in heaviest_first(self._total)[:TOP] if one not in self._own]
        top = tuple(
            Weight(name=one, own=self._own.get(one, 0.0), total=self._total[one], count=self._count[one])
            for one in [*heavy, *wide[: max(0, TOP - len(heavy))]]
        )
        return Profile(
            name=name,
            unit=unit,
            total=self.weight,
            samples=self.samples,
            top=top,
            threads=dict(heaviest_first(self._threads)),
            states=states or {},
            tree=self._tree.tree(),
        )

    def _known(self, name: str, names: Mapping[str, float]) -> str:
        return name if name in names or len(names) < _NAME_LIMIT else OTHER


def heaviest_first(weights: Mapping[Key, float]) -> list[tuple[Key, float]]:
    """Pairs in the order of their weight."""
    return sorted(weights.items(), key=lambda item: -item[1])
