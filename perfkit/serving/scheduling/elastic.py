"""When does an elastic pool start a thread, and when may one leave? Java's ThreadPoolExecutor rule.

A new request gets a new thread while there are fewer than `core`, even when others are idle; else it
queues; else, when the queue is full, it gets a new thread while there are fewer than `max`; else the
queue's own policy decides. A thread that has been idle for `keep_alive` leaves while there are more
than `core`. So a deep queue keeps the pool at its core for as long as the queue is not full.

Pure: it does not lock, its driver does.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElasticLimits:
    """Threads that stay, threads at most, and how long one above the core waits for work."""

    core: int
    max: int
    keep_alive_ns: int


class Placed(NamedTuple):
    """What becomes of new requests: so many start a thread each, so many queue."""

    starts: int
    queues: int


def place(count: int, threads: int, room: int, limits: ElasticLimits) -> Placed | None:
    """Where `count` new requests go, all or none, when `room` more may queue; None = not all can be taken.

    The same as handing them over one by one.
    """
    below_core = min(count, max(0, limits.core - threads))
    queues = min(count - below_core, room)
    starts = count - queues
    if starts > below_core and threads + starts > limits.max:
        return None
    return Placed(starts, queues)


class ElasticRule:
    """How many threads there are and may be. Not thread-safe."""

    def __init__(self, limits: ElasticLimits) -> None:
        self.limits = limits
        self.threads = 0
        self.peak = 0
        self.started = 0

    def place(self, count: int, room: int) -> Placed | None:
        """Where new requests go; `start` what it says."""
        return place(count, self.threads, room, self.limits)

    def start(self, count: int) -> None:
        """So many new threads count from now on."""
        self.threads += count
        self.started += count
        self.peak = max(self.peak, self.threads)

    def is_unstaffed(self) -> bool:
        """Something has queued: True when nobody is there to take it (core = 0), and a thread counts from now on."""
        if self.threads:
            return False
        self.start(1)
        return True

    def patience_ns(self) -> int | None:
        """How long an idle thread should wait for work; None = for as long as it takes."""
        return self.limits.keep_alive_ns if self.threads > self.limits.core else None

    def lets_go(self, queued: int) -> bool:
        """A thread's patience is over: True when it may leave, and it counts no more."""
        if self.threads <= self.limits.core or (self.threads == 1 and queued):
            return False
        self.leave()
        return True

    def leave(self) -> None:
        """A thread has ended for another reason: the pool is closing, or the thread has failed."""
        self.threads -= 1
