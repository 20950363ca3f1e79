"""Which connection carries each request of an open loop, and what if none is free?

Requests are due at instants computed before the start. A due request takes the connection that was
used last, else opens one, else waits at the client, and the wait is part of its latency.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.desk import Desk, Ticket
from perfkit.measuring.load.timer import Timer
from perfkit.records import EndState


class Arrivals:
    """Drives an open loop. One thread."""

    def __init__(
        self, may_open: int, offsets_ns: Sequence[int], alarm: Timer, desk: Desk, open_channel: Callable[[], Channel]
    ) -> None:
        self._offsets_ns = offsets_ns
        self._alarm = alarm
        self._desk = desk
        self._open_channel = open_channel
        self._may_open = may_open
        self._idle: deque[Channel] = deque()  # taken from the right: connected ones, the last used first
        self._busy = 0
        self._waiting: deque[Ticket] = deque()
        self._start_ns = 0
        self._next = 0
        self._count = len(offsets_ns)
        self.held = 0

    def start(self, start_ns: int, end_ns: int) -> None:
        """Set the clock by which requests are due; all of them are before the end."""
        self._start_ns = start_ns
        self._await_next()

    @property
    def is_done(self) -> bool:
        """Whether everything due has been sent and has ended."""
        return self._next == self._count and not self._busy and not self._waiting

    def on_alarm(self, now_ns: int) -> None:
        """Take up every request that is due."""
        while self._next < self._count:
            due_ns = self._start_ns + self._offsets_ns[self._next]
            if due_ns > now_ns:
                break
            self._next += 1
            self._take_up(due_ns)
        self._await_next()

    def _await_next(self) -> None:
        if self._next < self._count:
            self._alarm.wake_at(self._start_ns + self._offsets_ns[self._next])

    def _take_up(self, due_ns: int) -> None:
        if not self._waiting and (self._idle or self._may_open):
            self._busy += 1
            self._desk.issue(self._free_channel(), due_ns)
        else:
            self._waiting.append(self._desk.hold(due_ns))
            self.held += 1

    def _free_channel(self) -> Channel:
        if self._idle:
            return self._idle.pop()
        self._may_open -= 1
        return self._open_channel()

    def freed(self, channel: Channel, now_ns: int) -> None:
        """A channel's request has ended."""
        self._busy -= 1
        if channel.failures:
            self._idle.appendleft(channel)
        else:
            self._idle.append(channel)

    def set_aside(self, channel: Channel, now_ns: int) -> None:
        """The connection of a request that will be sent again serves others meanwhile."""
        self.freed(channel, now_ns)

    def resend(self, ticket: Ticket, channel: Channel | None) -> None:
        """Send a request again over any connection; it queues behind those that wait for one."""
        if not self._waiting and (self._idle or self._may_open):
            self._busy += 1
            self._free_channel().begin(*ticket)
        else:
            self._waiting.append(ticket)

    def settle(self, now_ns: int) -> None:
        """Give the channels that have become free to the requests that wait longest."""
        while self._waiting and self._idle:
            self._busy += 1
            self._idle.pop().begin(*self._waiting.popleft())

    def give_up(self, due_by_ns: int, outcome: EndState) -> None:
        """End the requests that were due by an instant and still wait for a connection."""
        while self._waiting and self._waiting[0].scheduled_ns <= due_by_ns:
            self._desk.drop(self._waiting.popleft(), outcome)

    def stop(self, now_ns: int) -> None:
        """Let nothing become due any more."""
        self._count = self._next
