"""Which number and payload does the next request get, and how late was it taken up?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from perfkit.clock import REAL_CLOCK
from perfkit.measuring.load.channel import Channel
from perfkit.measuring.load.lateness import Lateness
from perfkit.measuring.load.recorder import Recorder
from perfkit.measuring.load.share import Share
from perfkit.records import EndState


class Ticket(NamedTuple):
    """A request that is due but has no connection yet."""

    request_id: int
    payload: int
    scheduled_ns: int


class Desk:
    """Numbers requests from a first one on, all different in a run. One thread.

    Of several processes each takes every so-manieth number, so that together they number as one would.
    """

    def __init__(self, first_request_id: int, order: Sequence[int], recorder: Recorder, share: Share) -> None:
        self._recorder = recorder
        self._payloads = itertools.cycle(order)
        self._first_request_id = first_request_id + share.index
        self._next_request_id = self._first_request_id
        self._stride = share.count
        self.lateness = Lateness()
        self.last_taken_up_ns = 0

    @property
    def scheduled(self) -> int:
        """How many requests were taken up."""
        return (self._next_request_id - self._first_request_id) // self._stride

    def issue(self, channel: Channel, scheduled_ns: int) -> None:
        """Send the next request over a free channel."""
        request_id = self._next_request_id
        self._next_request_id = request_id + self._stride
        begun_ns = channel.begin(request_id, next(self._payloads), scheduled_ns)
        self.last_taken_up_ns = begun_ns
        self.lateness.add(begun_ns - scheduled_ns)

    def hold(self, scheduled_ns: int) -> Ticket:
        """Number the next request, to be sent when a channel is free."""
        request_id = self._next_request_id
        self._next_request_id = request_id + self._stride
        self.last_taken_up_ns = REAL_CLOCK.now_ns()
        self.lateness.add(self.last_taken_up_ns - scheduled_ns)
        return Ticket(request_id, next(self._payloads), scheduled_ns)

    def drop(self, ticket: Ticket, outcome: EndState) -> None:
        """End a held request that never got a channel."""
        self._recorder.record_unsent(*ticket, outcome)
