"""Is a reply whole when the connection ends after it? Only if its head announced no length."""

from __future__ import annotations

import contextlib

import httptools

_SELF_DELIMITING = (b"content-length", b"transfer-encoding")


class _Head:
    def __init__(self) -> None:
        self.is_complete = False
        self.is_delimited = False

    def on_header(self, name: bytes, _value: bytes) -> None:
        if name.lower() in _SELF_DELIMITING:
            self.is_delimited = True

    def on_headers_complete(self) -> None:
        self.is_complete = True


def status_ended_by_close(received: bytes) -> int:
    """The status of a reply that the end of the connection completes; 0 when it cut the reply short."""
    head = _Head()
    parser = httptools.HttpResponseParser(head)
    with contextlib.suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
        parser.feed_data(received)
    return int(parser.get_status_code()) if head.is_complete and not head.is_delimited else 0
