"""How do bytes on a socket become whole requests, within limits?

An asyncio protocol over a C parser. Limits are enforced before anything is buffered: the body's
declared and real size, the headers' size, and one absolute deadline for a whole request.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import httptools

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.serving.server.replies import error_body, response
from perfkit.settings import HttpSettings

_MAX_HEADER_BYTES = 64 << 10
_MAX_PIPELINED = 64
_LINGER_S = 3.0  # a refused client may still be sending: closing at once would reset it before it reads why
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request(NamedTuple):
    """One whole request as it came, and the connection that wants the answer."""

    connection: Connection
    method: bytes
    target: bytes
    headers: dict[bytes, bytes]
    body: bytes
    accepted_ns: int
    keeps_alive: bool


class Front:
    """What all connections of a port share."""

    def __init__(self, limits: HttpSettings, handle: Callable[[Request], None]) -> None:
        self.limits = limits
        self.handle = handle
        self.connections: set[Connection] = set()
        self.is_draining = False
        self.errors = 0  # requests that never became whole: bad syntax, too large, too slow

    def sweep(self) -> None:
        """Close what is too slow or idle too long; call about once a second."""
        now_ns = REAL_CLOCK.now_ns()
        for connection in list(self.connections):
            connection.enforce_deadlines(now_ns)

    def drain(self) -> None:
        """Close idle connections now, busy ones after their answer."""
        self.is_draining = True
        for connection in list(self.connections):
            connection.close_if_idle()


class Connection(asyncio.Protocol):
    """One client connection; requests on it are answered one after the other."""

    def __init__(self, front: Front) -> None:
        self.is_gone = False
        self.on_gone: Callable[[], None] | None = None  # set while a request is being worked on
        self.total_ns = 0  # first byte in to last byte out of the latest answer, taken apart from the ledger
        self._front = front
        self._now_ns = REAL_CLOCK.now_ns
        self._backlog: deque[Request] = deque()
        self._is_busy = False
        self._arrived_ns = 0
        self._refused_ns = 0  # when the input became unusable; what comes after it is thrown away
        self._idle_since_ns = self._now_ns()
        self._begin()

    # -- asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._parser = httptools.HttpRequestParser(self)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._front.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_gone = True
        self._front.connections.discard(self)
        self._backlog.clear()
        if self.on_gone is not None:
            self.on_gone()

    def data_received(self, data: bytes) -> None:
        if self._refused_ns:
            return
        if not self._is_busy:
            self._arrived_ns = self._now_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "upgrade", "this port speaks HTTP/1.1 only; send the request without Upgrade")
        except httptools.HttpParserError as error:
            self._refuse(400, "bad_http", f"not HTTP/1.1: {error}")
        if not self._has_headers:
            self._count_header_bytes(len(data))

    # -- parser -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begin()
        self._accepted_ns = self._now_ns()
        self._has_headers = False
        self._is_whole = False

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._has_headers = True
        self._count_header_bytes(sum(map(len, self._headers.values())))
        declared = self._headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._front.limits.max_body_bytes:
            self._refuse_body(int(declared))
        elif b"expect" in self._headers and not self.is_gone:
            self._transport.write(_CONTINUE)

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > self._front.limits.max_body_bytes:
            self._refuse_body(self._body_bytes)
        else:
            self._body.append(part)

    def on_message_complete(self) -> None:
        self._is_whole = True
        if self._refused_ns:
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(
            self,
            self._parser.get_method(),
            self._target,
            self._headers,
            body,
            self._accepted_ns,
            self._parser.should_keep_alive() and not self._front.is_draining,
        )
        if self._is_busy:
            self._queue(request)
        else:
            self._is_busy = True
            self._front.handle(request)

    # -- answers ------------------------------------------------------------------------------

    def answer(self, reply: bytes, *, closes: bool) -> None:
        """Send the answer to the request in hand and go on to the next. A client that has gone is no error."""
        self.on_gone = None
        if self.is_gone or self._transport.is_closing():
            self.total_ns = 0
            return
        self._transport.write(reply)
        self.total_ns = self._now_ns() - self._arrived_ns
        if closes:
            self._transport.close()
            return
        self._is_busy = False
        self._idle_since_ns = self._now_ns()
        if self._backlog:
            self._next()

    def close_if_idle(self) -> None:
        """Close the connection unless a request is in hand or half arrived."""
        if not self._is_busy and self._is_whole and not self.is_gone:
            self._transport.close()

    def enforce_deadlines(self, now_ns: int) -> None:
        """One absolute deadline for a whole request, one for an idle connection."""
        limits = self._front.limits
        if self._refused_ns:
            if now_ns - self._refused_ns > _LINGER_S * NS_PER_S:
                self._transport.close()
        elif not self._is_whole:
            if now_ns - self._accepted_ns > limits.request_timeout_s * NS_PER_S:
                message = f"the whole request must arrive within {limits.request_timeout_s:g} s"
                self._refuse(408, "slow_request", message)
        elif not self._is_busy and now_ns - self._idle_since_ns > limits.keep_alive_s * NS_PER_S:
            self._transport.close()

    # -- inside -------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._header_bytes = 0
        self._has_headers = True
        self._is_whole = True
        self._accepted_ns = 0

    def _queue(self, request: Request) -> None:
        self._backlog.append(request)
        if len(self._backlog) >= _MAX_PIPELINED:
            self._transport.pause_reading()

    def _next(self) -> None:
        request = self._backlog.popleft()
        self._transport.resume_reading()
        self._is_busy = True
        self._arrived_ns = self._now_ns()
        self._front.handle(request)

    def _count_header_bytes(self, more: int) -> None:
        self._header_bytes += more
        if self._header_bytes > _MAX_HEADER_BYTES:
            message = f"headers over {_MAX_HEADER_BYTES} bytes; send fewer or shorter ones"
            self._refuse(431, "headers_too_large", message)

    def _refuse_body(self, size: int) -> None:
        limit = self._front.limits.max_body_bytes
        message = f"the body has {size} bytes or more; at most {limit} are taken (setting http.max_body_bytes)"
        self._refuse(413, "body_too_large", message)

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer an unusable request and take no more: where the next request would begin is unknown."""
        if self._refused_ns:
            return
        self._refused_ns = self._now_ns()
        self._body.clear()
        self._front.errors += 1
        if not self.is_gone and not self._transport.is_closing():
            self._transport.write(response(status, error_body(code, message), closes=True))
            self._transport.write_eof()
