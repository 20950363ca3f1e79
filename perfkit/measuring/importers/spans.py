"""How much of a trace does each name hold, when spans of a thread lie inside each other?"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict

import numpy as np

from perfkit.measuring.importers.imported import Profile, Weight
from perfkit.measuring.importers.stacks import TOP, heaviest_first
from perfkit.measuring.importers.stacktree import TreeBuilder

_ROUNDING_US = 1e-3  # ends of nested spans may differ by the last digit that was written
_US_PER_S = 1e6
Thread = tuple[str, str]
Sums = defaultdict[int, float]


class Spans:
    """Spans of time by thread and name, 24 bytes each."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._threads: dict[Thread, int] = {}
        self._titles: dict[Thread, str] = {}
        self._at, self._length = array("d"), array("d")
        self._name, self._thread = array("i"), array("i")

    def __len__(self) -> int:
        return len(self._at)

    def name_thread(self, thread: Thread, title: str) -> None:
        """What a thread is called."""
        self._titles[thread] = title

    def add(self, name: str, thread: Thread, at_us: float, length_us: float) -> None:
        """One span."""
        self._at.append(at_us)
        self._length.append(length_us)
        self._name.append(self._names.setdefault(name, len(self._names)))
        self._thread.append(self._threads.setdefault(thread, len(self._threads)))

    def profile(self) -> Profile:
        """In seconds; `total` and the threads' shares count the outermost spans only."""
        names, threads = list(self._names), list(self._threads)
        tree = TreeBuilder()
        own, total, count, of_thread = self._sums(tree)
        weights = [
            Weight(name=names[key], own=own[key] / _US_PER_S, total=total[key] / _US_PER_S, count=count[key])
            for key in sorted(count, key=lambda key: -total[key])
        ]
        return Profile(
            name="all threads",
            unit="s",
            total=sum(of_thread.values()) / _US_PER_S,
            samples=len(self),
            top=tuple(weights[:TOP]),
            threads={self._title(threads[key]): value / _US_PER_S for key, value in heaviest_first(of_thread)},
            tree=tree.tree(),
        )

    def _title(self, thread: Thread) -> str:
        title = self._titles.get(thread, "")
        return f"{title} (tid {thread[1]})" if title else f"tid {thread[1]}"

    def _sums(self, tree: TreeBuilder) -> tuple[Sums, Sums, Counter[int], Sums]:
        names, titles = list(self._names), [self._title(thread) for thread in self._threads]
        own, total, of_thread = Sums(float), Sums(float), Sums(float)
        count: Counter[int] = Counter()
        open_spans: list[tuple[float, int, int]] = []  # end, name, node of the tree
        current = -1
        for index in self._order():
            start, span, name, thread = self._at[index], self._length[index], self._name[index], self._thread[index]
            if thread != current:
                current, open_spans = thread, []
            while open_spans and open_spans[-1][0] < start + span - _ROUNDING_US:
                open_spans.pop()
            while open_spans and open_spans[-1][0] <= start:
                open_spans.pop()
            count[name] += 1
            own[name] += span
            if open_spans:
                own[open_spans[-1][1]] -= span
                tree.weigh(open_spans[-1][2], -span / _US_PER_S)
            else:
                of_thread[thread] += span
            if all(other != name for _, other, _ in open_spans):
                total[name] += span
            node = tree.step(open_spans[-1][2] if open_spans else tree.root(titles[thread]), names[name])
            tree.weigh(node, span / _US_PER_S)
            open_spans.append((start + span, name, node))
        return own, total, count, of_thread

    def _order(self) -> array[int]:
        """By thread, then by start, the longer span first."""
        if not len(self):
            return array("q")
        at, length = np.frombuffer(self._at), np.frombuffer(self._length)
        order = np.lexsort((-length, at, np.frombuffer(self._thread, dtype=np.int32)))
        return array("q", order.astype(np.int64).tobytes())
