"""Which of the operations that wait at an engine starts next, and how long has the engine been busy?

An engine serves as many operations at once as it has slots (None = all at once, a pure delay), as long
as their shares of it are no more than 1 together, and never interrupts one. The first in the queue is
never overtaken: where it does not fit beside what runs, nothing behind it starts either. An engine
knows no clock: the timeline tells it what has become ready and what ended.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from perfkit.errors import ConfigError

FIFO = "fifo"
RANDOM = "random"
POLICIES = (FIFO, RANDOM)
_INTERVALS_KEPT = 4096  # what the utilisation view may look back on; older ones live on in the totals
_ROUNDING = 1e-9  # ten shares of a tenth are a whole


class Stream:
    """Operations submitted to one stream run in order. `tail` is the last one; owned by the timeline."""

    __slots__ = ("awaited", "pool", "priority", "tail")

    def __init__(self, priority: int = 0, pool: Hashable = None) -> None:
        self.priority = priority  # the smaller starts first, as in CUDA
        self.pool = pool  # whose memory pool its calls use
        self.tail: Operation | None = None
        self.awaited: list[Operation] = []  # what the next operation must wait for besides the tail


class Operation:
    """One piece of work on one engine. `started_ns` and `ended_ns` are None until it starts."""

    __slots__ = (
        "blockers", "duration_ns", "ended_ns", "engine", "followers",
        "open_blockers", "priority", "share", "started_ns", "tag",
    )  # fmt: skip

    def __init__(self, engine: Engine, duration_ns: int, priority: int, share: float = 0.0) -> None:
        self.engine = engine
        self.duration_ns = duration_ns
        self.priority = priority
        self.share = share  # of the engine, while it runs
        self.started_ns: int | None = None
        self.ended_ns: int | None = None  # known from the start on, since nothing is interrupted
        self.blockers: tuple[Operation, ...] = ()
        self.open_blockers = 0
        self.followers: list[Operation] | None = None
        self.tag: int | None = None  # the owner's mark; the timeline only carries it

    def has_ended(self, now_ns: int) -> bool:
        """Whether the operation is over at an instant up to which the timeline has advanced."""
        return self.ended_ns is not None and self.ended_ns <= now_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """What an engine is: its slots (None = unlimited) and who goes first among equals."""

    slots: int | None = 1
    policy: str = FIFO
    corun_ratio: float = 0.0  # growth of an operation's time for each other slot in use when it starts
    time_sharing: bool = False  # operations beyond the slots share their time instead of waiting

    def __post_init__(self) -> None:
        if self.slots is not None and self.slots < 1:
            raise ConfigError(f"slots is {self.slots}; an engine takes 1 or more (none = unlimited)")
        if self.policy not in POLICIES:
            raise ConfigError(f"policy is {self.policy!r}; it takes one of {', '.join(POLICIES)}")


class Engine:
    """The queue before an engine and what runs on it. Not thread-safe: the timeline's owner guards it."""

    def __init__(self, spec: EngineSpec, rng: random.Random) -> None:
        self.is_delay = spec.slots is None
        self.free_slots = spec.slots or 0
        self.running: list[Operation] = []
        self.work_ns = 0  # summed durations of all operations started
        self.share_ns = 0.0  # the same, each weighed with its share
        self.intervals: deque[tuple[int, int]] = deque(maxlen=_INTERVALS_KEPT)  # with at least one operation
        self.runs: deque[tuple[int, int, float]] = deque(maxlen=_INTERVALS_KEPT)  # the operations with a share
        self._corun_ratio = spec.corun_ratio
        self._sharing_slots = spec.slots if spec.time_sharing else None
        self._free_share = 1.0
        self._covered_until_ns = 0
        self._is_random = spec.policy == RANDOM
        self._rng = rng
        self._waiting: list[tuple[int, int, Operation]] = []
        self._arrivals = 0

    def enqueue(self, operation: Operation) -> None:
        """Take an operation that may start now; among equal priorities arrival decides (policy fifo)."""
        self._arrivals += 1
        entry = (operation.priority, self._arrivals, operation)
        if self._is_random:
            self._waiting.append(entry)
        else:
            heapq.heappush(self._waiting, entry)

    def take_next(self) -> Operation | None:
        """The waiting operation that starts now, if there is one and a slot is free."""
        waiting = self._waiting
        if not waiting or not (self.free_slots > 0 or self.is_delay or self._sharing_slots):
            return None
        if not self._is_random:
            return heapq.heappop(waiting)[2] if self._fits(waiting[0][2]) else None
        chosen = int(self._rng.random() * len(waiting))
        waiting[chosen], waiting[-1] = waiting[-1], waiting[chosen]
        return waiting.pop()[2]

    def begin(self, operation: Operation, at_ns: int) -> int:
        """Start an operation; the instant at which it will end."""
        if self.running and (self._corun_ratio or self._sharing_slots):
            operation.duration_ns = round(operation.duration_ns * self._growth())
        ended_ns = at_ns + operation.duration_ns
        operation.started_ns = at_ns
        operation.ended_ns = ended_ns
        self.work_ns += operation.duration_ns
        if not self.is_delay:
            self.free_slots -= 1
            self.running.append(operation)
            self._cover(at_ns, ended_ns)
        if operation.share:
            self._free_share -= operation.share
            self.share_ns += operation.share * operation.duration_ns
            self._note(at_ns, ended_ns, operation.share)
        return ended_ns

    def _growth(self) -> float:
        """By how much an operation that starts now is longer than alone. What runs is not touched by later ones: an
        approximation that is good where their number hardly changes, as with workers that always have work."""
        others, slots = len(self.running), self._sharing_slots
        if slots is None or others < slots:
            return 1 + self._corun_ratio * others
        return (1 + self._corun_ratio * (slots - 1)) * (others + 1) / slots

    def release(self, operation: Operation) -> None:
        """An operation has ended: its slot is free again."""
        if not self.is_delay:
            self.free_slots += 1
            self.running.remove(operation)
            self._free_share = self._free_share + operation.share if self.running else 1.0  # no drift over time

    def waiting(self) -> list[Operation]:
        """What could start but for the slots."""
        return [entry[2] for entry in self._waiting]

    def busy_ns(self, now_ns: int) -> int:
        """Summed busy time up to now; two operations side by side count twice."""
        return self.work_ns - sum(max(0, (running.ended_ns or 0) - now_ns) for running in self.running)

    def shared_ns(self, now_ns: int) -> float:
        """Busy time up to now, every operation weighed with its share."""
        return self.share_ns - sum(
            running.share * max(0, (running.ended_ns or 0) - now_ns) for running in self.running if running.share
        )

    def wait_bound_ns(self, operation: Operation, ready_ns: int) -> int:
        """An instant before which an operation, ready at an instant, can not start here."""
        if self.is_delay or not self.running:
            return ready_ns
        free_ns = min(running.ended_ns or 0 for running in self.running)
        return max(ready_ns, free_ns + self._ahead_ns(operation))

    def _fits(self, operation: Operation) -> bool:
        return not self.running or operation.share <= self._free_share + _ROUNDING

    def _ahead_ns(self, operation: Operation) -> int:
        """Work that surely runs before a waiting operation; 0 where that is not certain."""
        if self._is_random or self.free_slots or len(self.running) > 1:
            return 0
        entry = next((entry for entry in self._waiting if entry[2] is operation), None)
        if entry is None:
            return 0
        return sum(other[2].duration_ns for other in self._waiting if other[:2] < entry[:2])

    def _note(self, started_ns: int, ended_ns: int, share: float) -> None:
        """Keep a run for the views; it prolongs the one before where they adjoin and are alike."""
        runs = self.runs
        if runs and runs[-1][1] == started_ns and runs[-1][2] == share:
            started_ns = runs.pop()[0]
        runs.append((started_ns, ended_ns, share))

    def _cover(self, started_ns: int, ended_ns: int) -> None:
        """Note [started, ended) as covered, without what is covered already; starts come in order of time."""
        if ended_ns > self._covered_until_ns:
            self.intervals.append((max(started_ns, self._covered_until_ns), ended_ns))
            self._covered_until_ns = ended_ns
