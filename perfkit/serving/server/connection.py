"""How do bytes on a socket become whole requests, within limits?

An asyncio protocol over a C parser. Limits are enforced before anything is buffered: the body's
declared and real size, the headers' size, how many requests wait on one connection, and one
absolute deadline for a whole request. Answers leave in the order of their requests, and a client
that does not read its answers is not read from. The end of a client's stream means that it has left.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import httptools

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.serving.server.replies import error_body, response

if TYPE_CHECKING:
    from perfkit.serving.server.front import Front

_MAX_HEADER_BYTES = 64 << 10  # of target, names and values together
_MAX_HEADERS = 256  # each costs some 200 bytes beside its own
_FRAMING_BYTES = 8 * _MAX_HEADERS  # colons, spaces and line ends, which count for nothing
_PAUSE_AT = 64  # requests that wait on one connection; from here on it is not read
_MAX_PIPELINED = 1024  # one segment may hold more requests than that: no client means it
_LINGER_S = 3.0  # a refused client may still be sending: closing at once would reset it before it reads why
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_log = logging.getLogger("perfkit.server")


class Request(NamedTuple):
    """One whole request as it came, and the connection that wants the answer."""

    connection: Connection
    method: bytes
    target: bytes
    headers: dict[bytes, bytes]
    body: bytes | bytearray
    accepted_ns: int
    keeps_alive: bool


class Connection(asyncio.Protocol):
    """One client connection; requests on it are answered one after the other."""

    def __init__(self, front: Front) -> None:
        self.is_gone = False
        self.on_gone: Callable[[], None] | None = None  # set while a request is being worked on
        self.arrived_ns = 0  # when the request in hand began to arrive, read apart from the ledger's stamps
        self._front = front
        self._now_ns = REAL_CLOCK.now_ns
        self._backlog: deque[Request] = deque()  # whole requests behind the one in hand
        self._is_busy = False  # a request is in hand
        self._is_moving_on = False
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._overhead_bytes = 0  # of the present request, received without visible progress
        self._is_refused = False  # the input became unusable; what comes after it is thrown away
        self._refusal = b""
        self._abort_ns = 0  # once closing: when what is still unsent is given up
        self._idle_since_ns = self._now_ns()
        self._body: bytes | bytearray
        self._begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is open."""
        self._transport: Any = transport
        self._parser = httptools.HttpRequestParser(self)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._front.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: the connection has ended, whoever ended it."""
        self.is_gone = True
        self._backlog.clear()
        if self.on_gone is not None:
            self.on_gone()
        self._front.forget(self)

    def eof_received(self) -> None:
        """asyncio: the client has closed its side, which counts as having left."""
        self.is_gone = True  # what is answered from here on reaches nobody
        self._close()

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have come; a wrong or oversized request is refused, never raised."""
        if self._is_refused:
            return
        if self._is_whole and not self._is_busy:
            self.arrived_ns = self._now_ns()
        self._segment_bytes = len(data)
        self._has_progressed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse_upgrade()
        except httptools.HttpParserError as error:
            self._refuse(400, "bad_http", f"not HTTP/1.1: {error}")
        if not self._has_progressed:
            # No request began or ended and no byte of a body came: headers, trailers or chunk extensions.
            self._overhead_bytes += len(data)
            if self._overhead_bytes > _MAX_HEADER_BYTES + _FRAMING_BYTES or len(self._headers) > _MAX_HEADERS:
                self._refuse_headers()

    def pause_writing(self) -> None:
        """asyncio: the client reads its answers too slowly, so it is not read from."""
        self._is_writing_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        """asyncio: the client has read enough of its answers."""
        self._is_writing_paused = False
        self._move_on()

    def on_message_begin(self) -> None:
        """Parser: the first byte of a request."""
        self._begin()
        self._accepted_ns = self._now_ns()
        self._has_headers = False
        self._is_whole = False
        self._has_progressed = True

    def on_url(self, url: bytes) -> None:
        """Parser: a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser: one header or trailer."""
        if not self._has_headers:  # else it is a trailer
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Parser: the headers are whole; what they announce is held against the limits."""
        self._has_headers = True
        headers = self._headers
        began_before = not self._has_progressed  # in an earlier segment, whose bytes are not counted yet
        if began_before or self._overhead_bytes + self._segment_bytes > _MAX_HEADER_BYTES:
            self._count_headers()
        elif len(headers) > _MAX_HEADERS:
            self._refuse_headers()
        if b"content-length" in headers:
            declared = int(headers[b"content-length"][-20:])  # checked by the parser; cut, for it may have many zeros
            if declared > self._front.limits.max_body_bytes:
                self._refuse_body(declared)
        if b"upgrade" in headers:
            self._refuse_upgrade()
        if b"expect" in headers:
            self._continue()

    def on_body(self, part: bytes) -> None:
        """Parser: a part of the body; more than `max_body_bytes` is refused."""
        self._has_progressed = True
        if self._is_refused:
            return
        size = len(self._body) + len(part)
        if size > self._front.limits.max_body_bytes:
            self._refuse_body(size)
        elif not self._body:
            self._body = part
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)  # grows in place: a body may come byte by byte
            self._body.extend(part)

    def on_message_complete(self) -> None:
        """Parser: a whole request, to be worked on now or behind the one in hand."""
        self._is_whole = True
        self._has_progressed = True
        if self._is_refused:
            return
        request = Request(
            self,
            self._parser.get_method(),
            self._target,
            self._headers,
            self._body,
            self._accepted_ns,
            self._keeps_alive(),
        )
        if self._is_busy or self._is_writing_paused:
            self._queue(request)
        else:
            self._start(request)

    def answer(self, reply: bytes, *, closes: bool) -> int:
        """Send the answer to the request in hand and go on to the next; returns when, by this connection's clock.

        0 when the client has gone, which is no error.
        """
        self.on_gone = None
        if self.is_gone or self._transport.is_closing():
            return 0
        # Before the write: the client may have the bytes before this thread runs on.
        answered_ns = self._idle_since_ns = self._now_ns()
        self._transport.write(reply)
        if closes:
            self._close()
            return answered_ns
        self._is_busy = False
        if self._backlog or self._is_refused or not self._is_whole:
            self._move_on()
        return answered_ns

    def turn_away(self, code: str, message: str) -> None:
        """Answer the request in hand or half arrived with 503, and close."""
        if self._is_busy:
            self.answer(response(503, error_body(code, message, self._target), closes=True), closes=True)
        elif not self._is_whole:
            self._refuse(503, code, message)

    def close_if_idle(self) -> None:
        """Close the connection unless a request is in hand or half arrived."""
        if not self._is_busy and not self._backlog and self._is_whole:
            self._close()

    def enforce_deadlines(self, now_ns: int) -> None:
        """One absolute deadline for a whole request, one for an idle connection, one for the last bytes out."""
        limits = self._front.limits
        is_old = now_ns - self._idle_since_ns > limits.keep_alive_s * NS_PER_S
        if self._abort_ns:
            if now_ns > self._abort_ns:
                self._transport.abort()
        elif self._is_writing_paused:
            if is_old:  # the client does not read its answers
                self._close()
        elif not self._is_whole and not self._is_refused:
            if now_ns - self._accepted_ns > limits.request_timeout_s * NS_PER_S:
                message = f"the whole request must arrive within {limits.request_timeout_s:g} s"
                self._refuse(408, "slow_request", message)
        elif is_old:
            self.close_if_idle()

    def _begin(self) -> None:
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = b""
        self._overhead_bytes = 0
        self._owes_continue = False
        self._has_headers = True
        self._is_whole = True
        self._accepted_ns = 0

    def _keeps_alive(self) -> bool:
        if self._front.is_draining or not self._parser.should_keep_alive():
            return False
        # An HTTP/1.0 client may ask for it, but would have to be told so in words of its own time.
        return b"connection" not in self._headers or self._parser.get_http_version() != "1.0"

    def _start(self, request: Request) -> None:
        self._is_busy = True
        try:
            self._front.handle(request)
        except Exception:
            _log.exception("cannot handle %s %s", request.method, request.target[:200])
            if self._is_busy:
                body = error_body("internal", "the server failed on this request; its log says why", request.target)
                self.answer(response(500, body, closes=True), closes=True)

    def _queue(self, request: Request) -> None:
        if len(self._backlog) >= _MAX_PIPELINED:
            self._refuse(400, "pipelined", f"over {_MAX_PIPELINED} requests at once; await answers before sending more")
            return
        self._backlog.append(request)
        if len(self._backlog) >= _PAUSE_AT:
            self._pause_reading()

    def _move_on(self) -> None:
        """Take up what waits behind an answer. A loop, because the next answer may come at once."""
        if self._is_moving_on:
            return
        self._is_moving_on = True
        while self._backlog and not self._is_busy and not self._is_writing_paused and not self._abort_ns:
            request = self._backlog.popleft()
            self.arrived_ns = request.accepted_ns
            self._start(request)
        self._is_moving_on = False
        if self._abort_ns or self.is_gone:
            return
        if self._is_refused and not self._is_busy and not self._backlog:
            self._send_refusal()
        elif self._owes_continue and not self._is_busy:
            self._owes_continue = False
            self._transport.write(_CONTINUE)
        if self._is_reading_paused and not self._is_writing_paused and len(self._backlog) < _PAUSE_AT:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _close(self) -> None:
        """Close once everything written has left, or the client has not read it for as long as it may idle."""
        self._abort_ns = self._abort_ns or self._now_ns() + round(self._front.limits.keep_alive_s * NS_PER_S)
        self._transport.close()

    def _continue(self) -> None:
        if not self._is_refused and self._headers[b"expect"].lower() == b"100-continue":
            self._owes_continue = True
            if not self._is_busy:
                self._move_on()

    def _count_headers(self) -> None:
        size = len(self._target) + sum(len(name) + len(value) for name, value in self._headers.items())
        if size > _MAX_HEADER_BYTES or len(self._headers) > _MAX_HEADERS:
            self._refuse_headers()

    def _refuse_headers(self) -> None:
        most = f"{_MAX_HEADERS} headers or {_MAX_HEADER_BYTES} bytes of them"
        self._refuse(431, "headers_too_large", f"more than {most}; send fewer or shorter ones")

    def _refuse_upgrade(self) -> None:
        self._refuse(400, "upgrade", "this port speaks HTTP/1.1 only; send the request without Upgrade")

    def _refuse_body(self, size: int) -> None:
        limit = self._front.limits.max_body_bytes
        message = f"the body has {size} bytes or more; at most {limit} are taken (setting http.max_body_bytes)"
        self._refuse(413, "body_too_large", message)

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer an unusable request and take no more: where the next request would begin is unknown."""
        if self._is_refused:
            return
        self._is_refused = True
        self._body = b""
        self._headers = {}
        self._front.errors += 1
        self._refusal = response(status, error_body(code, message, self._target), closes=True)
        if not self._is_busy:
            self._move_on()

    def _send_refusal(self) -> None:
        self._abort_ns = self._now_ns() + round(_LINGER_S * NS_PER_S)
        self._transport.write(self._refusal)
        self._transport.write_eof()
