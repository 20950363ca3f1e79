"""What does the one path of a prediction ask of a protocol? To read a request, and to write its answer.

`/predict` and the Open Inference Protocol differ in nothing else: admission, ledger, cancellation,
timing and the status of an error are `predict.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from perfkit.serving.server.connection import Request
from perfkit.serving.server.replies import JSON

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service


MAX_ID_CHARACTERS = 256  # of the id that a client gives its request


class MalformedRequest(Exception):
    """The request cannot be read: HTTP status, code and message for the client."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def check_content(request: Request, allowed: Sequence[bytes]) -> None:
    """Raises MalformedRequest with 415 unless the body is of an allowed type, JSON where none is told, and plain."""
    content_type = request.headers.get(b"content-type", JSON)
    if content_type not in allowed and content_type.partition(b";")[0].strip().lower() not in allowed:
        came, wanted = content_type.decode("latin-1")[:80], " or ".join(known.decode() for known in allowed)
        raise MalformedRequest(415, "content_type", f"content-type is {came!r}; send {wanted}")
    if b"content-encoding" in request.headers:
        raise MalformedRequest(415, "content_encoding", "send the body without content-encoding")


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
