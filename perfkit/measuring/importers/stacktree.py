"""Which paths of calls hold how much of a profile, as the flame graph draws them?

Node arrays, a parent always before its children. Past a limit of nodes a path is cut: its weight goes to
the deepest node that there is, so that the sum stays whole and memory bounded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

ROOT = -1
_LIMIT = 50_000  # nodes: a page stays a few MB
_THREAD_LIMIT = 1000
_OTHERS = "(other threads)"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlameTree:
    """Nodes in columns: `parent` and `thread` are indices, `name` one into `names`; `own` in the profile's unit."""

    names: tuple[str, ...]
    threads: tuple[str, ...]
    parent: tuple[int, ...]
    name: tuple[int, ...]
    own: tuple[float, ...]
    thread: tuple[int, ...]


class TreeBuilder:
    """Adds up paths."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._threads: dict[str, int] = {}
        self._places: dict[tuple[int, int, int], int] = {}
        self._parent: list[int] = []
        self._name: list[int] = []
        self._own: list[float] = []
        self._thread: list[int] = []

    def add(self, thread: str, frames: Sequence[str], weight: float) -> None:
        """One stack of a thread, root first."""
        place = self.root(thread)
        for frame in frames:
            place = self.step(place, frame)
        self.weigh(place, weight)

    def root(self, thread: str) -> int:
        """The node of a thread; those past a limit share one."""
        name = thread if thread in self._threads or len(self._threads) < _THREAD_LIMIT else _OTHERS
        return self._node(ROOT, name, self._threads.setdefault(name, len(self._threads)))

    def step(self, parent: int, name: str) -> int:
        """The child of a node that has a name; the node itself where there is no room for another."""
        thread = self._thread[parent]
        is_new = (thread, parent, self._names.get(name, ROOT)) not in self._places
        return parent if is_new and len(self._parent) >= _LIMIT else self._node(parent, name, thread)

    def weigh(self, place: int, weight: float) -> None:
        """Adds to what a node holds alone."""
        self._own[place] += weight

    def tree(self) -> FlameTree | None:
        """What was added; None when it weighs nothing."""
        if not any(self._own):
            return None
        return FlameTree(
            names=tuple(self._names),
            threads=tuple(self._threads),
            parent=tuple(self._parent),
            name=tuple(self._name),
            own=tuple(max(0.0, own) for own in self._own),
            thread=tuple(self._thread),
        )

    def _node(self, parent: int, name: str, thread: int) -> int:
        known = self._names.setdefault(name, len(self._names))
        place = self._places.setdefault((thread, parent, known), len(self._parent))
        if place == len(self._parent):
            self._parent.append(parent)
            self._name.append(known)
            self._own.append(0.0)
            self._thread.append(thread)
        return place
