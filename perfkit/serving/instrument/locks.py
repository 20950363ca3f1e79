"""Who waits for which lock, who holds it, for how long, and from which place in the code?

Drop-in lock, condition and queue that count. Each site (the function that acquires) has its own
figures. They are changed only by the thread that holds the lock itself, so counting needs no lock of
its own and adds less than a microsecond. Standard library only, and for
use as a library in anybody's service; perfkit's own server does not count its locks.

`wait` is time from asking for a lock to having it; `hold` from having it to giving it back; `idle`
is time in `Condition.wait`, for a notification and not for the lock; `queued` is the time of an item
in a queue. An acquire that gives up (non-blocking, or timed out) leaves no trace.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Generic, TypeVar

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock

Item = TypeVar("Item")
_OWN_FILES = frozenset({__file__, threading.__file__, queue.__file__})


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteUse:
    """What happened to one lock at one site: how often, and the total and longest time of each kind."""

    lock: str
    site: str
    acquired_count: int
    contended_count: int
    wait_s: float
    longest_wait_s: float
    hold_s: float
    longest_hold_s: float
    idle_count: int
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUse:
    """How many items went through a queue, and how long they lay in it."""

    queue: str
    item_count: int
    queued_s: float
    longest_queued_s: float


class _Tally:
    """The running figures of one site; changed only while its lock is held."""

    __slots__ = (
        "acquired",
        "contended",
        "hold_ns",
        "idle_ns",
        "idles",
        "longest_hold_ns",
        "longest_wait_ns",
        "wait_ns",
    )

    def __init__(self) -> None:
        self.acquired = self.contended = self.wait_ns = self.longest_wait_ns = 0
        self.hold_ns = self.longest_hold_ns = self.idles = self.idle_ns = 0


class MeasuredLock:
    """A mutual-exclusion lock that counts by site. Shared between threads."""

    def __init__(self, name: str, clock: Clock = REAL_CLOCK) -> None:
        self.name = name
        self.now_ns = clock.now_ns
        self._lock = threading.Lock()  # guards everything below, and whatever the user guards with it
        self._tallies: dict[CodeType, _Tally] = {}
        self._holder = _Tally()
        self._since_ns = self._waited_ns = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As threading.Lock.acquire."""
        waited_ns = 0
        if self._lock.acquire(False):
            since_ns = self.now_ns()
        else:
            asked_ns = self.now_ns()
            if not blocking or not self._lock.acquire(True, timeout):
                return False
            since_ns = self.now_ns()
            waited_ns = since_ns - asked_ns
        self._holder = tally = self._tally()
        self._since_ns = since_ns
        self._waited_ns = waited_ns
        tally.acquired += 1
        if waited_ns:
            tally.contended += 1
            tally.wait_ns += waited_ns
            tally.longest_wait_ns = max(tally.longest_wait_ns, waited_ns)
        return True

    def release(self) -> None:
        """As threading.Lock.release."""
        held_ns = self.now_ns() - self._since_ns
        tally = self._holder
        tally.hold_ns += held_ns
        if held_ns > tally.longest_hold_ns:
            tally.longest_hold_ns = held_ns
        self._lock.release()

    def locked(self) -> bool:
        """As threading.Lock.locked."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()

    def add_idle(self, asked_ns: int) -> None:
        """Count a wait for a notification, that began at an instant and ended when this lock was taken again."""
        tally = self._tally()
        tally.idles += 1
        tally.idle_ns += self._since_ns - self._waited_ns - asked_ns

    def summary(self) -> list[SiteUse]:
        """Figures by site, the longest total wait first."""
        with self._lock:
            uses = [_use(self.name, code, tally) for code, tally in self._tallies.items()]
        return sorted(uses, key=lambda use: (-use.wait_s, -use.hold_s, use.site))

    def _tally(self) -> _Tally:
        """The tally of the nearest function that is no part of a lock, condition or queue."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
            frame = frame.f_back
        tally = self._tallies.get(frame.f_code)
        if tally is None:
            tally = self._tallies[frame.f_code] = _Tally()
        return tally


class MeasuredCondition(threading.Condition):
    """A condition over a counting lock; its waits for a notification are counted as idle. Shared between threads."""

    def __init__(self, lock: MeasuredLock) -> None:
        super().__init__(lock)  # type: ignore[arg-type]  # Condition takes whatever acquires and releases
        self._counting = lock

    def wait(self, timeout: float | None = None) -> bool:
        """As threading.Condition.wait."""
        asked_ns = self._counting.now_ns()
        is_notified = super().wait(timeout)
        self._counting.add_idle(asked_ns)
        return is_notified


class MeasuredQueue(queue.Queue[Item], Generic[Item]):
    """A queue that counts its lock by site and the time of its items. Shared between threads."""

    def __init__(self, name: str, maxsize: int = 0, clock: Clock = REAL_CLOCK) -> None:
        super().__init__(maxsize)
        self.name = name
        self._items = self._queued_ns = self._longest_queued_ns = 0  # changed only while mutex is held
        self._counting = MeasuredLock(name, clock)
        self.mutex = self._counting  # type: ignore[assignment]
        self.not_empty = MeasuredCondition(self._counting)
        self.not_full = MeasuredCondition(self._counting)
        self.all_tasks_done = MeasuredCondition(self._counting)

    # queue.Queue calls these two with the mutex held; what lies inside is (instant, item).
    def _put(self, item: Any) -> None:
        self.queue.append((self._counting.now_ns(), item))

    def _get(self) -> Item:
        put_ns, item = self.queue.popleft()
        queued_ns = self._counting.now_ns() - put_ns
        self._items += 1
        self._queued_ns += queued_ns
        self._longest_queued_ns = max(self._longest_queued_ns, queued_ns)
        return item  # type: ignore[no-any-return]

    def summary(self) -> list[SiteUse]:
        """Figures of the queue's lock by site; a getter's idle time is there."""
        return self._counting.summary()

    def item_summary(self) -> QueueUse:
        """How long items lay in the queue, over those that have left it."""
        with self.mutex:
            return QueueUse(
                queue=self.name,
                item_count=self._items,
                queued_s=self._queued_ns / NS_PER_S,
                longest_queued_s=self._longest_queued_ns / NS_PER_S,
            )


def summarise(locks: Iterable[MeasuredLock | MeasuredQueue[Any]]) -> list[SiteUse]:
    """Figures of several locks and queues together, the longest total wait first."""
    uses = [use for lock in locks for use in lock.summary()]
    return sorted(uses, key=lambda use: (-use.wait_s, -use.hold_s, use.lock, use.site))


def _use(lock: str, code: CodeType, tally: _Tally) -> SiteUse:
    return SiteUse(
        lock=lock,
        site=f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})",
        acquired_count=tally.acquired,
        contended_count=tally.contended,
        wait_s=tally.wait_ns / NS_PER_S,
        longest_wait_s=tally.longest_wait_ns / NS_PER_S,
        hold_s=tally.hold_ns / NS_PER_S,
        longest_hold_s=tally.longest_hold_ns / NS_PER_S,
        idle_count=tally.idles,
        idle_s=tally.idle_ns / NS_PER_S,
    )
