"""What travels through the server? One input of one request, with its row in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import orjson

from perfkit.clock import Clock
from perfkit.records import EndState


class Receiver(Protocol):
    """Who waits for a job: called on the event loop, once, when the job has ended."""

    def job_done(self, job: Job) -> None:
        """The job has its output or its error."""


def to_json(answer: Any) -> bytes:
    """A model's answer as JSON, arrays of numbers included; raises TypeError for what has none."""
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


class Job:
    """One input on its way. Mutable for speed: exactly one thread owns it at a time, and it is handed over through
    a queue, so nothing in it is guarded. `is_gone` alone is written by the event loop at any time (the client left).
    """

    __slots__ = (
        "batch_row",
        "code",
        "deadline_ns",
        "encode",
        "end_state",
        "is_alone",
        "is_gone",
        "item",
        "lane",
        "message",
        "output",
        "payload",
        "queued_ns",
        "receiver",
        "retry_after_s",
        "row",
    )

    def __init__(self, payload: Any, receiver: Receiver, row: int, deadline_ns: int) -> None:
        self.payload = payload
        self.receiver = receiver
        self.row = row  # its row in the request ledger
        self.deadline_ns = deadline_ns  # 0 = none
        self.queued_ns = 0
        self.lane = 0
        self.is_alone = False  # wants a batch to itself
        self.item: Any = None
        self.encode: Callable[[Any], Any] = to_json  # from the model's answer to what its protocol writes
        self.output: Any = b""  # what `encode` made of the answer
        self.end_state = EndState.OPEN
        self.code = ""  # machine-readable reason when it did not end well
        self.message = ""
        self.retry_after_s = 0.0
        self.is_gone = False
        self.batch_row: Sequence[int] = ()  # the batch's instants, for Server-Timing

    def is_over(self, clock: Clock) -> bool:
        """Ask before each stage: ends the job, and says so, when the client has left or the deadline has passed."""
        if self.is_gone:
            self.end(EndState.CANCELLED, "client_gone")
            return True
        if self.deadline_ns and clock.now_ns() >= self.deadline_ns:
            self.expire()
            return True
        return False

    def expire(self) -> None:
        """End because the deadline has passed."""
        self.end(EndState.EXPIRED, "deadline", "the deadline passed before the answer was ready")

    def end(self, state: EndState, code: str = "", message: str = "") -> None:
        """Mark how the job ended; the first ending stays."""
        if self.end_state is EndState.OPEN:
            self.end_state = state
            self.code = code
            self.message = message
