"""Which requests may wait, and which leave together, and when?

A pure state machine that is handed the time: threads drive it in real time, tests and the twin in
virtual time. It does not lock; its driver does.

An item is *admitted* once, after parsing, and counts against the depth until a worker takes it
(or it expires or is cancelled). What does not fit meets the policy: it is rejected, waits at the
door, takes the place of the oldest, or goes back to its caller to be run there. An item is *queued*
when it is ready for a worker. A batch leaves when it is full or when its first item has waited for
the window; with no window, an idle worker takes what there is.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from typing import Generic

from perfkit.serving.scheduling.decisions import (
    Admission,
    CallerRuns,
    Decision,
    Displaced,
    Idle,
    Item,
    Limits,
    Parked,
    Rejected,
    Send,
    WaitUntil,
)
from perfkit.serving.scheduling.door import Door
from perfkit.serving.scheduling.drain import DrainRate


class Scheduler(Generic[Item]):
    """Bounded queue with batching by size or window, and deadlines. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: deque[Item] = deque()
        self._admitted = 0
        self._draining = False
        self._rate = DrainRate()
        self._door: Door[Item] | None = Door() if limits.policy == "block" else None
        self._depth = sys.maxsize if limits.depth is None else limits.depth
        self._sheds = limits.policy == "shed"

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

    @property
    def parked(self) -> int:
        """Items that wait at the door."""
        return len(self._door) if self._door is not None else 0

    def admit(self, items: Sequence[Item], now_ns: int) -> Admission[Item]:
        """Let the items of one request in, all or none; None means admitted."""
        if self._draining:
            return self._rejected("draining")
        if self._sheds and self._would_be_late(items, now_ns):
            return self._rejected("shed")
        if self._admitted + len(items) > self._depth or self._door:
            return self._meet_policy(items, now_ns)
        self._admitted += len(items)
        return None

    def let_in(self) -> list[Item]:
        """Who waited at the door and fits now, in order; they are admitted. Ask whenever something has left."""
        entered: list[Item] = []
        if self._door is None:
            return entered
        while party := self._door.next_fitting(sys.maxsize if self._draining else self._depth - self._admitted):
            self._admitted += len(party)
            entered += party
        return entered

    def turn_away(self, now_ns: int) -> tuple[list[Item], Rejected]:
        """Who has waited at the door for too long, and what to tell them."""
        late = self._door.turn_away(now_ns) if self._door is not None else []
        return late, self._rejected("blocked")

    def next_turn_away_ns(self) -> int | None:
        """When the next at the door has waited for too long; None when nobody waits there."""
        return self._door.next_until_ns() if self._door is not None else None

    def withdraw(self, count: int = 1) -> None:
        """Admitted items that will never be queued: their preprocess failed, or they were cancelled in it."""
        self._admitted -= count

    def room_for(self, items: Sequence[Item]) -> int:
        """How many items like these may still be admitted before the queue is full."""
        return 0 if self._door else max(0, self._depth - self._admitted)

    def finish(self, items: Sequence[Item], now_ns: int) -> None:
        """Admitted items that were served without ever being queued."""
        self._admitted -= len(items)
        self._rate.left(len(items), now_ns, self._admitted)

    def enqueue(self, item: Item) -> None:
        """An admitted item is ready for a worker; its `queued_ns` is set."""
        self._waiting.append(item)

    def cancel(self, item: Item) -> bool:
        """Forget an item that is queued or at the door; False when it is neither (a worker has it, or preprocess)."""
        if self._door is not None and self._door.forget(item):
            return True
        try:
            self._waiting.remove(item)
        except ValueError:
            return False
        self._admitted -= 1
        return True

    def drain(self) -> None:
        """Admit nothing more; who waits at the door comes in whatever the depth."""
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

    def _rejected(self, reason: str) -> Rejected:
        return Rejected(reason=reason, retry_after_s=self._rate.predict_s(self._admitted))

    def _would_be_late(self, items: Sequence[Item], now_ns: int) -> bool:
        """Whether the last of them would leave the queue after its deadline, at the present pace."""
        deadline_ns = items[-1].deadline_ns
        if not deadline_ns:
            return False
        ahead = self._admitted + len(items) - 1
        return self._rate.predict_leave_ns(ahead, self.limits.max_size, now_ns) >= deadline_ns

    def _meet_policy(self, items: Sequence[Item], now_ns: int) -> Admission[Item]:
        """What becomes of items for which there is no room."""
        policy = self.limits.policy
        if self._door is not None:
            return Parked(self._door.wait(items, now_ns + self.limits.block_ns))
        if policy == "caller_runs":
            return CallerRuns()
        if policy == "drop_oldest":
            return self._displace(len(items))
        return self._rejected("discarded" if policy == "discard" else "queue_full")

    def _displace(self, count: int) -> Displaced[Item] | Rejected:
        """Let `count` items in for as many of the oldest; what is in preprocess cannot be thrown out."""
        surplus = self._admitted + count - self._depth
        if surplus > len(self._waiting):
            return self._rejected("queue_full")
        retry_after_s = self._rate.predict_s(self._admitted)
        oldest = [self._waiting.popleft() for _ in range(surplus)]
        self._admitted += count - surplus
        return Displaced(oldest, retry_after_s)

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
