"""Which requests may wait, and which leave together, and when?

A pure state machine that is handed the time: threads drive it in real time, tests and the twin in
virtual time. It does not lock; its driver does.

An item is *admitted* once, after parsing, and counts against the depth until a worker takes it
(or it expires or is cancelled). What does not fit meets the policy: it is rejected, waits at the
door, takes the place of the oldest, or goes back to its caller to be run there. An item is *queued*
when it is ready for a worker. A batch leaves when it is full or when its first item has waited for
the window; with no window, an idle worker takes what there is. An item that wants to be alone is a
batch of its own, for which no window is open.
"""

from __future__ import annotations

from perfkit.serving.scheduling.decisions import Decision, Idle, Item, Limits, Send, WaitUntil
from perfkit.serving.scheduling.line import Line


class Scheduler(Line[Item]):
    """One bounded queue with batching by size or window, and deadlines. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.max_size = limits.max_size
        self.max_delay_ns = limits.max_delay_ns
        self.max_silence_ns = 0  # since the last arrival, after which a window closes early; 0 = any

    @property
    def is_full_batch(self) -> bool:
        """Whether something waits that no window keeps: a whole batch, or an item that wants to be alone."""
        return len(self._waiting) >= self.max_size or bool(self._alone)

    def decide(self, now_ns: int) -> Decision[Item]:
        """What should a free worker do now?"""
        waiting, max_size = self._waiting, self.max_size
        if not waiting and not self._alone:
            return Idle([])
        expired = self._drop_expired(now_ns)
        if self._alone and (not waiting or self._goes_alone(now_ns)):
            return self._send_alone(now_ns, expired)
        if not waiting:
            return Idle(expired)
        first = waiting[0]
        if len(waiting) < max_size and not self._draining:
            due_ns = first.queued_ns + self.max_delay_ns
            if self.max_silence_ns:
                due_ns = min(due_ns, waiting[-1].queued_ns + self.max_silence_ns)
            if now_ns < due_ns:
                return WaitUntil(min(due_ns, first.deadline_ns) if first.deadline_ns else due_ns, expired)
        else:
            due_ns = waiting[min(len(waiting), max_size) - 1].queued_ns
        batch = self._take(now_ns, expired)
        return Send(batch, due_ns, expired) if batch else self._decide_after(expired, now_ns)

    def _goes_alone(self, now_ns: int) -> bool:
        """Whether who wants to be alone is next: it came first, or the others' window is still open."""
        first = self._waiting[0]
        is_open = len(self._waiting) < self.max_size and now_ns < first.queued_ns + self.max_delay_ns
        return is_open or self._alone[0].queued_ns < first.queued_ns

    def _send_alone(self, now_ns: int, expired: list[Item]) -> Send[Item]:
        item = self._alone.popleft()  # it has not expired: its queue's head was just looked at
        self._admitted -= 1
        self._rate.left(1, now_ns, self.queued)
        return Send([item], item.queued_ns, expired)

    def _decide_after(self, expired: list[Item], now_ns: int) -> Decision[Item]:
        """Decide again after a whole batch turned out to have expired."""
        again = self.decide(now_ns)
        return again._replace(expired=expired + again.expired)

    def _take(self, now_ns: int, expired: list[Item]) -> list[Item]:
        waiting = self._waiting
        batch: list[Item] = []
        taken = 0
        while waiting and len(batch) < self.max_size:
            item = waiting.popleft()
            taken += 1
            (expired if 0 < item.deadline_ns <= now_ns else batch).append(item)
        self._admitted -= taken
        self._rate.left(taken, now_ns, len(waiting) + len(self._alone))
        return batch
