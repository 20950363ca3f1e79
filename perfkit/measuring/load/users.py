"""When does each user of a closed loop send again?

A user is ready one think time after the reply; with no think time, at the instant at which the
reply was there. After a request that brought no reply a user holds back a little, longer each time,
so that a dead service is asked a few times a second instead of as fast as the machine can.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from perfkit.clock import NS_PER_S
from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.desk import Desk, Ticket
from perfkit.measuring.load.schedule import UserPlan
from perfkit.measuring.load.timer import Timer
from perfkit.records import EndState

FIRST_BACK_OFF_NS = NS_PER_S // 100
LONGEST_BACK_OFF_NS = NS_PER_S // 2


def back_off_ns(failures: int) -> int:
    """The pause after so many requests in a row without a reply: doubling, up to half a second."""
    return min(LONGEST_BACK_OFF_NS, FIRST_BACK_OFF_NS << min(failures - 1, 16))


class Users:
    """Drives a closed loop: one channel is one user. One thread."""

    def __init__(self, plan: UserPlan, alarm: Timer, desk: Desk, open_channel: Callable[[], Channel]) -> None:
        self._pauses_ns = plan.pauses_ns
        self._thinks = plan.thinks
        self._first_ns = plan.first_ns
        self._alarm = alarm
        self._issue = desk.issue
        self._open_channel = open_channel
        self._ready: list[tuple[int, int, Channel]] = []  # a heap: instant, tie break, user
        self._numbers = itertools.count()
        self._active = 0
        self._end_ns = 0
        self.held = 0  # nobody waits for a connection: each user has one

    def start(self, start_ns: int, end_ns: int) -> None:
        """Let every user send a first request; none becomes ready at or after the end."""
        self._end_ns = end_ns
        self._active = len(self._first_ns)
        for pause_ns in self._first_ns:
            self._send_when_ready(self._open_channel(), start_ns + pause_ns, start_ns)

    @property
    def is_done(self) -> bool:
        """Whether every user has had the last reply and will not send again."""
        return self._active == 0

    def freed(self, channel: Channel, now_ns: int) -> None:
        """A user's request has ended."""
        if channel.failures:
            self._send_when_ready(channel, now_ns + back_off_ns(channel.failures), now_ns)
        elif self._thinks:
            self._send_when_ready(channel, now_ns + next(self._pauses_ns), now_ns)
        else:
            self._send_when_ready(channel, now_ns, now_ns)

    def set_aside(self, channel: Channel, now_ns: int) -> Channel:
        """A user whose request will be sent again waits along with it."""
        return channel

    def resend(self, ticket: Ticket, channel: Channel | None) -> None:
        """Send a user's request again."""
        assert channel is not None
        channel.begin(*ticket)

    def _send_when_ready(self, channel: Channel, ready_ns: int, now_ns: int) -> None:
        if ready_ns >= self._end_ns:
            self._active -= 1
        elif ready_ns == now_ns:
            self._issue(channel, ready_ns)
        else:
            heapq.heappush(self._ready, (ready_ns, next(self._numbers), channel))
            if self._ready[0][0] == ready_ns:
                self._alarm.wake_at(ready_ns)

    def on_alarm(self, now_ns: int) -> None:
        """Let the users send whose think time is over."""
        while self._ready and self._ready[0][0] <= now_ns:
            ready_ns, _, channel = heapq.heappop(self._ready)
            self._issue(channel, ready_ns)
        if self._ready:
            self._alarm.wake_at(self._ready[0][0])

    def stop(self, now_ns: int) -> None:
        """Let nobody become ready any more."""
        self._end_ns = min(self._end_ns, now_ns)
        self._active -= len(self._ready)
        self._ready.clear()

    def settle(self, now_ns: int) -> None:
        """Nothing waits for a free channel here."""

    def give_up(self, due_by_ns: int, outcome: EndState) -> None:
        """Nothing waits for a free channel here."""
