"""What does an answer look like on the wire? Bytes of HTTP/1.1 responses, and nothing else."""

from __future__ import annotations

import http
import math
from collections.abc import Mapping
from email.utils import formatdate

import orjson

JSON = b"application/json"
OPEN_INFERENCE = b"/v2"  # where the paths of the Open Inference Protocol begin
_MAX_MESSAGE = 1200  # characters: a message may quote what came
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}


class Date:
    """The Date header's value, renewed once a second by whoever ticks."""

    def __init__(self) -> None:
        self.line = b""
        self.renew()

    def renew(self) -> None:
        """Take the present time."""
        self.line = b"date: " + formatdate(usegmt=True).encode() + b"\r\n"


DATE = Date()


def response(
    status: int, body: bytes, content_type: bytes = JSON, extra: bytes = b"", *, closes: bool = False
) -> bytes:
    """One whole response. `extra` is ready header lines."""
    connection = b"connection: close\r\n" if closes else b""
    return b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b%b%b\r\n%b" % (
        _STATUS_LINES[status],
        content_type,
        len(body),
        DATE.line,
        extra,
        connection,
        body,
    )


def error_body(code: str, message: str, target: bytes = b"") -> bytes:
    """The JSON of an error answer, in the words of the protocol that the request's target belongs to."""
    # Half a surrogate pair, as file names may hold, is no UTF-8.
    text = message[:_MAX_MESSAGE].encode("utf-8", "replace").decode()
    if target.startswith(OPEN_INFERENCE):
        return orjson.dumps({"error": text})
    return orjson.dumps({"error": {"code": code, "message": text}})


def retry_after(seconds: float, chance: float = 0.0) -> bytes:
    """The Retry-After line: whole seconds, at least 1, as the standard wants.

    `chance`, from 0 up to 1, spreads the returns over half as long again and at least a second, so that those who
    were rejected together do not come back together.
    """
    return b"retry-after: %d\r\n" % max(1, math.ceil(seconds + chance * max(1.0, seconds / 2)))


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Header lines from names and values that the server itself made."""
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
