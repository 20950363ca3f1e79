"""What does a recording of stacks look like as a flame graph, and which functions top it?

Table in, plain data out: stacks documents (see the collectors) become node arrays for flame.js, a
parent always before its children. A frame is a function in a file; its lines are joined. Recordings
of different modes stay apart: their samples are of different kinds and are never added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
ROOT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFrame:
    """A function's part of all samples: as the one that runs (`self`), and anywhere on the stack (`total`)."""

    name: str
    self_count: int
    total_count: int
    self_ratio: float
    total_ratio: float


def flame_data(recordings: Sequence[dict[str, Any]], title: str, simulated: bool) -> dict[str, Any]:
    """Everything that flame.js draws, for one title and any number of recordings."""
    names: dict[str, int] = {}
    return {
        "schema": SCHEMA,
        "title": title,
        "simulated": simulated,
        "recordings": [_recording(stacks, names) for stacks in recordings],
        "names": list(names),
    }


def top_frames(stacks: dict[str, Any], n: int) -> list[TopFrame]:
    """The n functions with the most samples of their own; a function counts once a sample however deep it recurs."""
    labels = _frame_labels(stacks)
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for (_, stack), count in _count_samples(stacks).items():
        path = [labels[frame] for frame in stacks["stacks"][stack]]
        own.update({path[-1]: count} if path else {})
        total.update(dict.fromkeys(path, count))
    everything = len(stacks["samples"]["stack"])
    ranked = sorted(total, key=lambda name: (-own[name], -total[name], name))[:n]
    return [
        TopFrame(
            name=name,
            self_count=own[name],
            total_count=total[name],
            self_ratio=own[name] / everything,
            total_ratio=total[name] / everything,
        )
        for name in ranked
    ]


def thread_labels(threads: Iterable[dict[str, Any]]) -> list[str]:
    """A name for each thread; the native id stands beside a name that several threads share."""
    threads = list(threads)
    uses = Counter(thread["name"] for thread in threads)
    return [
        thread["name"]
        if thread["name"] and uses[thread["name"]] == 1
        else f"{thread['name'] or 'thread'} ({thread['id']})"
        for thread in threads
    ]


@dataclass(slots=True)
class _Tree:
    """Node arrays under construction: a node is known by its parent and its name."""

    parent: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    places: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def step(self, parent: int, name: int, thread: int) -> int:
        """The child of a node that has a name, made when it is new."""
        key = (thread, parent, name)
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = len(self.parent)
            self.parent.append(parent)
            self.name.append(name)
            self.own.append(0)
            self.thread.append(thread)
        return place


def _recording(stacks: dict[str, Any], names: dict[str, int]) -> dict[str, Any]:
    threads = thread_labels(stacks["threads"])
    roots = [names.setdefault(label, len(names)) for label in threads]
    frames = [names.setdefault(label, len(names)) for label in _frame_labels(stacks)]
    tree = _Tree()
    for (thread, stack), count in _count_samples(stacks).items():
        place = tree.step(ROOT, roots[thread], thread)
        for frame in stacks["stacks"][stack]:
            place = tree.step(place, frames[frame], thread)
        tree.own[place] += count
    facts = {key: stacks[key] for key in ("mode", "rate_hz", "seconds", "sample_count", "error_count")}
    return {
        **facts,
        "threads": threads,
        "parent": tree.parent,
        "name": tree.name,
        "self": tree.own,
        "thread": tree.thread,
    }


def _count_samples(stacks: dict[str, Any]) -> Counter[tuple[int, int]]:
    samples = stacks["samples"]
    return Counter(zip(samples["thread"], samples["stack"], strict=True))


def _frame_labels(stacks: dict[str, Any]) -> list[str]:
    return [f"{frame['name']} ({frame['file']})" if frame["file"] else frame["name"] for frame in stacks["frames"]]
