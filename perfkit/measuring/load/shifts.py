"""When does each user of a closed loop send, where their number changes with the time?

A user takes part in shifts that were decided before the start. Whoever gets the last reply of a shift
comes back at the start of the next, if there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.desk import Desk
from perfkit.measuring.load.schedule import Shift, UserPlan
from perfkit.measuring.load.timer import Timer
from perfkit.measuring.load.users import Users


class ShiftingUsers(Users):
    """Drives a closed loop whose users come and go. One thread."""

    def __init__(self, plan: UserPlan, alarm: Timer, desk: Desk, open_channel: Callable[[], Channel]) -> None:
        super().__init__(plan, alarm, desk, open_channel)
        self._shifts = [deque(shifts) for shifts in plan.shifts]
        self._shifts_of: dict[Channel, deque[Shift]] = {}
        self._start_ns = 0

    def start(self, start_ns: int, end_ns: int) -> None:
        """Let every user send a first request in its first shift; none becomes ready at or after the end."""
        self._start_ns = start_ns
        self._end_ns = end_ns
        self._active = len(self._first_ns)
        for pause_ns, shifts in zip(self._first_ns, self._shifts, strict=True):
            channel = self._open_channel()
            self._shifts_of[channel] = shifts
            first_ns = shifts[0].start_ns if shifts else 0
            self._send_when_ready(channel, start_ns + first_ns + pause_ns, start_ns)

    def _send_when_ready(self, channel: Channel, ready_ns: int, now_ns: int) -> None:
        shifts, ready = self._shifts_of[channel], ready_ns - self._start_ns
        while shifts and ready >= shifts[0].end_ns:
            shifts.popleft()
        if not shifts:
            self._active -= 1
        else:
            super()._send_when_ready(channel, max(ready, shifts[0].start_ns) + self._start_ns, now_ns)
