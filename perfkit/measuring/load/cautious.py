"""What does a client do besides sending: hold itself back, tell its deadline, read Retry-After?

A channel for loads that retry, throttle or have a deadline. Others use the plain one and pay nothing.
"""

from __future__ import annotations

import dataclasses
import random

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.load.channel import Channel, Site
from perfkit.measuring.load.poller import Poller
from perfkit.measuring.load.retries import Throttle, read_retry_after
from perfkit.records import EndState

_RETRY_AFTER = b"retry-after"
_now_ns = REAL_CLOCK.now_ns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """What all cautious channels of a run share."""

    deadline_ns: int | None
    throttle: Throttle | None
    source: random.Random


class CautiousChannel(Channel):
    """A channel that may end a request before it is sent: held back by the throttle, or too old. One thread."""

    def __init__(self, site: Site, poller: Poller, caution: Caution) -> None:
        super().__init__(site, poller)
        self._caution = caution

    def begin(self, request_id: int, payload: int, scheduled_ns: int, headers: bytes = b"") -> int:
        """Send a request with what is left of its deadline, unless it is held back."""
        now_ns = _now_ns()
        self.retry_after_s = 0.0
        self.request_id, self.payload, self.scheduled_ns = request_id, payload, scheduled_ns
        caution = self._caution
        if caution.throttle is not None and not caution.throttle.lets_through(now_ns, caution.source.random()):
            return self._keep_back(EndState.REJECTED, "held back by the client's own throttle", now_ns)
        if caution.deadline_ns is not None:
            left_ns = scheduled_ns + caution.deadline_ns - now_ns
            if left_ns <= 0:
                return self._keep_back(EndState.EXPIRED, "its deadline passed before it was sent", now_ns)
            headers += b"\r\nPerfkit-Deadline: %.6f" % (left_ns / NS_PER_S)
        return super().begin(request_id, payload, scheduled_ns, headers)

    def _keep_back(self, outcome: EndState, reason: str, now_ns: int) -> int:
        """End the request unsent; the connection, if there is one, is kept."""
        self.sent_ns = self.bytes_sent = 0
        self.failures += 1  # a user whose request was kept back pauses like one who got no reply
        self.fault = reason
        self._record(self, int(outcome), 0, now_ns)
        self._forget_request()
        self._freed(self, now_ns)
        return now_ns

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        if len(name) == len(_RETRY_AFTER) and name.lower() == _RETRY_AFTER:
            self.retry_after_s = read_retry_after(value)
