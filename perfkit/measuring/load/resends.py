"""Where does a failed request wait until it is sent again?

Around `Users` or `Arrivals`: an attempt that failed is judged here before anybody counts it as the
request's end. A closed loop's user waits along with the request; in an open loop the connection
serves others meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
import random
from typing import NamedTuple

from perfkit.measuring.load.attempts import STRIDE, attempt_of
from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.desk import Ticket
from perfkit.measuring.load.driver import Loop
from perfkit.measuring.load.recorder import Recorder
from perfkit.measuring.load.retries import NOT_ACCEPTED, Failure, RetryPolicy, Throttle
from perfkit.measuring.load.timer import Timer
from perfkit.records import EndState


class _Pending(NamedTuple):
    due_ns: int
    number: int  # breaks ties
    ticket: Ticket
    channel: Channel | None


class Resends:
    """Drives a load whose failed requests are sent again. One thread."""

    def __init__(
        self, driver: Loop, policy: RetryPolicy, throttle: Throttle | None, recorder: Recorder, source: random.Random
    ) -> None:
        self._driver = driver
        self._recorder = recorder
        self._chance = source.random
        self._pending: list[_Pending] = []  # a heap
        self._numbers = itertools.count()
        self._again: tuple[int, Ticket] | None = None  # between `record` and `freed` of one attempt
        self._is_stopping = False
        self.policy = policy
        self.throttle = throttle
        self.alarm = Timer()

    @property
    def held(self) -> int:
        """Requests that had to wait at the client for a connection."""
        return self._driver.held

    @property
    def is_done(self) -> bool:
        """Whether nothing is due or waits to be sent again, and everything has ended."""
        return not self._pending and self._driver.is_done

    def record(self, channel: Channel, outcome: int, status: int, now_ns: int) -> None:
        """Judge an attempt that has ended: keep it as the request's end, or plan the next."""
        attempt = attempt_of(channel.request_id)
        if attempt == 1:
            self.policy.first_attempt_ended()
        if self.throttle is not None and outcome not in NOT_ACCEPTED:
            self.throttle.accepted(now_ns)
        pause_ns = self._pause_ns(channel, attempt, outcome, now_ns)
        if pause_ns is None:
            self._recorder.record(channel, outcome, status, now_ns)
        else:
            self._recorder.count_retried(outcome, status)
            ticket = Ticket(channel.request_id + STRIDE, channel.payload, channel.scheduled_ns)
            self._again = now_ns + pause_ns, ticket

    def _pause_ns(self, channel: Channel, attempt: int, outcome: int, now_ns: int) -> int | None:
        if outcome == EndState.OK or self._is_stopping:
            return None
        age_ns = now_ns - channel.scheduled_ns
        failure = Failure(attempt=attempt, outcome=outcome, age_ns=age_ns, retry_after_s=channel.retry_after_s)
        return self.policy.pause_ns(failure, self._chance())

    def freed(self, channel: Channel, now_ns: int) -> None:
        """A channel's attempt has ended, and with it perhaps its request."""
        if self._again is None:
            self._driver.freed(channel, now_ns)
            return
        (due_ns, ticket), self._again = self._again, None
        stays = self._driver.set_aside(channel, now_ns)
        heapq.heappush(self._pending, _Pending(due_ns, next(self._numbers), ticket, stays))
        self.alarm.wake_at(self._pending[0].due_ns)

    def on_resend_due(self, now_ns: int) -> None:
        """Send again what has waited long enough."""
        self.alarm.acknowledge()
        while self._pending and self._pending[0].due_ns <= now_ns:
            due = heapq.heappop(self._pending)
            self._driver.resend(due.ticket, due.channel)
        if self._pending:
            self.alarm.wake_at(self._pending[0].due_ns)

    def give_up(self, due_by_ns: int, outcome: EndState) -> None:
        """End requests that wait for a channel; one that waits for its next attempt leaves at its own time."""
        self._driver.give_up(due_by_ns, outcome)

    def stop(self, now_ns: int) -> None:
        """Let nothing become due any more, nor be sent again."""
        self._is_stopping = True
        self._driver.stop(now_ns)
        ended, self._pending = self._pending, []
        for one in ended:
            self._recorder.record_unsent(*one.ticket, EndState.CANCELLED, "the generator left before the next attempt")
            if one.channel is not None:
                self._driver.freed(one.channel, now_ns)

    def start(self, start_ns: int, end_ns: int) -> None:
        """Begin a phase between two instants."""
        self._driver.start(start_ns, end_ns)

    def on_alarm(self, now_ns: int) -> None:
        """Send what is due for the first time."""
        self._driver.on_alarm(now_ns)

    def settle(self, now_ns: int) -> None:
        """Use the channels that have become free."""
        self._driver.settle(now_ns)
