"""Who may join a queue, and what becomes of whoever finds it full?

One bounded queue with its policy: a scheduler's only one, or that of one of its lanes. What is in it
leaves by the scheduler's decision; that is not this module's business.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from typing import Generic

from perfkit.serving.scheduling.decisions import (
    Admission,
    CallerRuns,
    Displaced,
    Item,
    Limits,
    Parked,
    Rejected,
)
from perfkit.serving.scheduling.door import Door
from perfkit.serving.scheduling.drain import DrainRate


class Line(Generic[Item]):
    """Admission, the door outside, and the queue in order of arrival. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: deque[Item] = deque()
        self._alone: deque[Item] = deque()  # those that want a batch to themselves
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
        return len(self._waiting) + len(self._alone)

    def counts_of(self, lane: int) -> tuple[int, int]:
        """How many items are queued and admitted in a lane, which here is the only one."""
        return self.queued, self._admitted

    def room_for(self, items: Sequence[Item]) -> int:
        """How many items like these may still be admitted before the queue is full."""
        return 0 if self._door else max(0, self._depth - self._admitted)

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

    def withdraw(self, item: Item) -> None:
        """An admitted item that will never be queued: its preprocess failed, or it was cancelled in it."""
        self._admitted -= 1

    def finish(self, items: Sequence[Item], now_ns: int) -> None:
        """Admitted items that were served without ever being queued."""
        self._admitted -= len(items)
        self._rate.left(len(items), now_ns, self._admitted)

    def enqueue(self, item: Item) -> None:
        """An admitted item is ready for a worker; its `queued_ns` is set."""
        (self._alone if item.is_alone else self._waiting).append(item)

    def cancel(self, item: Item) -> bool:
        """Forget an item that is queued or at the door; False when it is neither (a worker has it, or preprocess)."""
        if self._door is not None and self._door.forget(item):
            return True
        try:
            (self._alone if item.is_alone else self._waiting).remove(item)
        except ValueError:
            return False
        self._admitted -= 1
        return True

    def drain(self) -> None:
        """Admit nothing more; who waits at the door comes in whatever the depth."""
        self._draining = True

    def _rejected(self, reason: str) -> Rejected:
        return Rejected(reason=reason, retry_after_s=self._rate.predict_s(self._admitted))

    def _would_be_late(self, items: Sequence[Item], now_ns: int) -> bool:
        """Whether the last of them would leave the queue after its deadline, at the present pace."""
        deadline_ns = items[-1].deadline_ns
        if not deadline_ns:
            return False
        ahead = self._admitted + len(items) - 1
        return self._rate.predict_leave_ns(ahead, now_ns) >= deadline_ns

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
        if surplus > self.queued:
            return self._rejected("queue_full")
        retry_after_s = self._rate.predict_s(self._admitted)
        oldest = [self._oldest_queue().popleft() for _ in range(surplus)]
        self._admitted += count - surplus
        return Displaced(oldest, retry_after_s)

    def _oldest_queue(self) -> deque[Item]:
        """Of the two queues the one whose first item came first; at least one holds something."""
        if not self._alone:
            return self._waiting
        is_older = not self._waiting or self._alone[0].queued_ns < self._waiting[0].queued_ns
        return self._alone if is_older else self._waiting

    def _drop_expired(self, now_ns: int) -> list[Item]:
        """Take what has expired off the heads of the queues."""
        expired: list[Item] = []
        for waiting in (self._waiting, self._alone):
            while waiting and 0 < waiting[0].deadline_ns <= now_ns:
                expired.append(waiting.popleft())
        self._admitted -= len(expired)
        return expired
