"""What does the one path of a prediction ask of a protocol? To read a request, and to write its answer.

`/predict` and the Open Inference Protocol differ in nothing else: admission, ledger, cancellation,
timing and the status of an error are `predict.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from perfkit.serving.server.connection import Request

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service


class MalformedRequest(Exception):
    """The request cannot be read: HTTP status, code and message for the client."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Call(Protocol):
    """One request as its protocol understood it."""

    payloads: list[Any]  # one for each input, as `Model.preprocess` takes them
    content_type: bytes  # of what `write` made
    headers: bytes  # beside it, as ready lines

    def encode(self, answer: Any) -> Any:
        """One output as `write` takes it. Runs on a worker thread: whatever costs time belongs here."""

    def write(self, outputs: Sequence[Any]) -> bytes:
        """The answer's body, from what `encode` made of each output. Runs on the event loop."""


Reader = Callable[["Service", Request], Call]
"""Reads a request by one protocol; raises MalformedRequest."""
