"""How do several lanes share the same workers?

The scheduler with a queue for each lane: each has its own depth, policy and door, and an order says
whose item joins the batch next. A batch may hold items of several lanes; a window is open until the
oldest item of any lane has waited for it. With one lane this decides as the plain scheduler does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from perfkit.serving.scheduling.decisions import (
    Admission,
    Decision,
    Idle,
    Item,
    Limits,
    Rejected,
    Send,
    WaitUntil,
)
from perfkit.serving.scheduling.line import Line
from perfkit.serving.scheduling.order import Order, Turn


class Lane(Line[Item]):
    """One lane's queue, and its turn in the order."""

    def __init__(self, limits: Limits, turn: Turn) -> None:
        super().__init__(limits)
        self.turn = turn

    @property
    def first(self) -> Item | None:
        """What leaves next of those that share a batch."""
        return self._waiting[0] if self._waiting else None

    @property
    def shared(self) -> int:
        """How many wait that may share a batch."""
        return len(self._waiting)

    @property
    def first_alone(self) -> Item | None:
        """What leaves next of those that want to be alone."""
        return self._alone[0] if self._alone else None

    def is_alone_next(self) -> bool:
        """Whether its oldest item wants to be alone."""
        return bool(self._alone) and self._oldest_queue() is self._alone

    def oldest_ns(self) -> int:
        """When its oldest item was queued; ask only when something waits."""
        return self._oldest_queue()[0].queued_ns

    def drop_expired(self, now_ns: int) -> list[Item]:
        """Take what has expired off its heads."""
        return self._drop_expired(now_ns)

    def pop(self, *, is_alone: bool) -> Item:
        """Its next item leaves."""
        self._admitted -= 1
        return (self._alone if is_alone else self._waiting).popleft()

    def left(self, count: int, now_ns: int) -> None:
        """That many left together."""
        self._rate.left(count, now_ns, self.queued)


class LaneScheduler(Generic[Item]):
    """Lanes in front of common workers. `item.lane` is the key of its lane. Not thread-safe."""

    def __init__(self, limits: Limits, lanes: Mapping[int, Lane[Item]], order: Order) -> None:
        self.limits = limits
        self.max_size = limits.max_size
        self.max_delay_ns = limits.max_delay_ns
        self.max_silence_ns = 0  # since the last arrival in any lane, after which a window closes early; 0 = any
        self._last_ns = 0  # when the last item was queued
        self.lanes = lanes
        self._order = order
        self._draining = False

    @property
    def admitted(self) -> int:
        """Items admitted and not yet taken, in all lanes."""
        return sum(lane.admitted for lane in self.lanes.values())

    @property
    def queued(self) -> int:
        """Items that wait for a worker, in all lanes."""
        return sum(lane.queued for lane in self.lanes.values())

    @property
    def parked(self) -> int:
        """Items that wait at a door."""
        return sum(lane.parked for lane in self.lanes.values())

    @property
    def is_full_batch(self) -> bool:
        """Whether something waits that no window keeps: a whole batch, or an item that wants to be alone."""
        return self.queued >= self.max_size or any(lane.first_alone is not None for lane in self.lanes.values())

    def admit(self, items: Sequence[Item], now_ns: int) -> Admission[Item]:
        """Let the items of one request, all of one lane, into that lane, all or none; None means admitted."""
        return self.lanes[items[0].lane].admit(items, now_ns)

    def let_in(self) -> list[Item]:
        """Who waited at the lanes' doors and fits now; they are admitted."""
        return [item for lane in self.lanes.values() for item in lane.let_in()]

    def turn_away(self, now_ns: int) -> tuple[list[Item], Rejected]:
        """Who has waited at a door for too long, and what to tell them (the most patient lane's answer)."""
        answers = [lane.turn_away(now_ns) for lane in self.lanes.values()]
        retry_after_s = max(rejected.retry_after_s for late, rejected in answers)
        return [item for late, _ in answers for item in late], Rejected(reason="blocked", retry_after_s=retry_after_s)

    def next_turn_away_ns(self) -> int | None:
        """When the next at a door has waited for too long; None when nobody waits at one."""
        instants = [lane.next_turn_away_ns() for lane in self.lanes.values()]
        return min((instant for instant in instants if instant is not None), default=None)

    def counts_of(self, lane: int) -> tuple[int, int]:
        """How many items are queued and admitted in a lane."""
        return self.lanes[lane].counts_of(lane)

    def room_for(self, items: Sequence[Item]) -> int:
        """How many items of this lane may still be admitted before it is full."""
        return self.lanes[items[0].lane].room_for(items)

    def withdraw(self, item: Item) -> None:
        """An admitted item that will never be queued."""
        self.lanes[item.lane].withdraw(item)

    def finish(self, items: Sequence[Item], now_ns: int) -> None:
        """Admitted items of one lane that were served without ever being queued."""
        self.lanes[items[0].lane].finish(items, now_ns)

    def enqueue(self, item: Item) -> None:
        """An admitted item is ready for a worker; its `queued_ns` is set."""
        lane = self.lanes[item.lane]
        if not lane.queued:
            self._order.joined(lane.turn)
        lane.enqueue(item)
        self._last_ns = item.queued_ns

    def cancel(self, item: Item) -> bool:
        """Forget an item that is queued or at its lane's door; False when it is neither."""
        return self.lanes[item.lane].cancel(item)

    def drain(self) -> None:
        """Admit nothing more; who waits at a door comes in whatever the depth."""
        self._draining = True
        for lane in self.lanes.values():
            lane.drain()

    def decide(self, now_ns: int) -> Decision[Item]:
        """What should a free worker do now?"""
        expired = [item for lane in self.lanes.values() for item in lane.drop_expired(now_ns)]
        busy = [lane for lane in self.lanes.values() if lane.queued]
        if not busy:
            return Idle(expired)
        firsts = [lane.first for lane in busy if lane.first is not None]
        due_ns = min((item.queued_ns for item in firsts), default=now_ns) + self.max_delay_ns
        if self.max_silence_ns:
            due_ns = min(due_ns, self._last_ns + self.max_silence_ns)
        is_full = self._draining or sum(lane.shared for lane in busy) >= self.max_size
        is_open = now_ns < due_ns and not is_full
        if is_open:
            busy = [lane for lane in busy if lane.first_alone is not None]
            if not busy:
                deadlines = [item.deadline_ns for item in firsts if item.deadline_ns]
                return WaitUntil(min(due_ns, *deadlines) if deadlines else due_ns, expired)
        lane = self._pick(busy, now_ns)
        if is_open or lane.is_alone_next():
            return self._send_alone(lane, now_ns, expired)
        batch = self._take(lane, now_ns, expired)
        if batch:
            return Send(batch, max(item.queued_ns for item in batch) if is_full else due_ns, expired)
        again = self.decide(now_ns)
        return again._replace(expired=expired + again.expired)

    def _pick(self, lanes: Sequence[Lane[Item]], now_ns: int) -> Lane[Item]:
        for lane in lanes:
            lane.turn.oldest_ns = lane.oldest_ns()
        turn = self._order.pick([lane.turn for lane in lanes], now_ns)
        return next(lane for lane in lanes if lane.turn is turn)

    def _send_alone(self, lane: Lane[Item], now_ns: int, expired: list[Item]) -> Send[Item]:
        item = lane.pop(is_alone=True)  # it has not expired: its queue's head was just looked at
        lane.left(1, now_ns)
        return Send([item], item.queued_ns, expired)

    def _take(self, lane: Lane[Item], now_ns: int, expired: list[Item]) -> list[Item]:
        """A batch that begins with this lane's first item; what has expired on the way is left out."""
        batch: list[Item] = []
        taken: dict[int, int] = {}
        while True:
            item = lane.pop(is_alone=False)
            taken[item.lane] = taken.get(item.lane, 0) + 1
            (expired if 0 < item.deadline_ns <= now_ns else batch).append(item)
            sharing = [lane for lane in self.lanes.values() if lane.first is not None]
            if not sharing or len(batch) >= self.max_size:
                break
            lane = self._pick(sharing, now_ns)
        for key, count in taken.items():
            self.lanes[key].left(count, now_ns)
        return batch
