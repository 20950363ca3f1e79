"""Which requests may wait, and which leave together, and when?

A pure state machine that is handed the time: threads drive it in real time, tests and the twin in
virtual time. It does not lock; its driver does.

An item is *admitted* once, after parsing, and counts against the depth until a worker takes it
(or it expires or is cancelled). It is *queued* when it is ready for a worker. A batch leaves when
it is full or when its first item has waited for the window; with no window, an idle worker takes
what there is.
"""

from __future__ import annotations

from collections import deque
from typing import Generic

from perfkit.serving.scheduling.decisions import Decision, Idle, Item, Limits, Rejected, Send, WaitUntil
from perfkit.serving.scheduling.drain import DrainRate


class Scheduler(Generic[Item]):
    """Bounded queue with batching by size or window, and deadlines. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: deque[Item] = deque()
        self._admitted = 0
        self._draining = False
        self._rate = DrainRate()

    @property
    def admitted(self) -> int:
        """Items admitted and not yet taken: in preprocess or in the queue."""
        return self._admitted

    @property
    def queued(self) -> int:
        """Items that wait for a worker."""
        return len(self._waiting)

    @property
    def is_full_batch(self) -> bool:
        """Whether a whole batch waits."""
        return len(self._waiting) >= self.limits.max_size

    def admit(self, count: int = 1) -> Rejected | None:
        """Let `count` items in (all or none); None means admitted."""
        if self._draining:
            return Rejected(reason="draining", retry_after_s=self._rate.predict_s(self._admitted))
        if self._admitted + count > self.limits.depth:
            return Rejected(reason="queue_full", retry_after_s=self._rate.predict_s(self._admitted))
        self._admitted += count
        return None

    def withdraw(self, count: int = 1) -> None:
        """Admitted items that will never be queued: their preprocess failed, or they were cancelled in it."""
        self._admitted -= count

    def enqueue(self, item: Item) -> None:
        """An admitted item is ready for a worker; its `queued_ns` is set."""
        self._waiting.append(item)

    def cancel(self, item: Item) -> bool:
        """Forget a queued item; False when it is not in the queue (a worker has it, or preprocess)."""
        try:
            self._waiting.remove(item)
        except ValueError:
            return False
        self._admitted -= 1
        return True

    def drain(self) -> None:
        """Admit nothing more."""
        self._draining = True

    def decide(self, now_ns: int) -> Decision[Item]:
        """What should a free worker do now?"""
        waiting, limits = self._waiting, self.limits
        expired = self._drop_expired(now_ns)
        if not waiting:
            return Idle(expired)
        first = waiting[0]
        if len(waiting) < limits.max_size and not self._draining:
            due_ns = first.queued_ns + limits.max_delay_ns
            if now_ns < due_ns:
                return WaitUntil(min(due_ns, first.deadline_ns) if first.deadline_ns else due_ns, expired)
        else:
            due_ns = waiting[min(len(waiting), limits.max_size) - 1].queued_ns
        batch = self._take(now_ns, expired)
        return Send(batch, due_ns, expired) if batch else self._decide_after(expired, now_ns)

    def _decide_after(self, expired: list[Item], now_ns: int) -> Decision[Item]:
        """Decide again after a whole batch turned out to have expired."""
        again = self.decide(now_ns)
        return again._replace(expired=expired + again.expired)

    def _drop_expired(self, now_ns: int) -> list[Item]:
        waiting = self._waiting
        expired: list[Item] = []
        while waiting and 0 < waiting[0].deadline_ns <= now_ns:
            expired.append(waiting.popleft())
        self._admitted -= len(expired)
        return expired

    def _take(self, now_ns: int, expired: list[Item]) -> list[Item]:
        waiting = self._waiting
        batch: list[Item] = []
        taken = 0
        while waiting and len(batch) < self.limits.max_size:
            item = waiting.popleft()
            taken += 1
            (expired if 0 < item.deadline_ns <= now_ns else batch).append(item)
        self._admitted -= taken
        self._rate.left(taken, now_ns, len(waiting))
        return batch
