"""How does one request travel over one TCP connection, and how can that end?

A channel carries one request at a time and opens its connection when it needs one. Whatever
happens to a request, `record` and then `freed` are called exactly once for it.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
from collections.abc import Callable, Sequence

import httptools

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.load.loops import Load
from perfkit.measuring.load.outcomes import STATUS_OUTCOMES
from perfkit.measuring.load.payloads import RequestParts
from perfkit.measuring.load.poller import READS, WRITES, Handler, Poller
from perfkit.measuring.load.reply import status_ended_by_close
from perfkit.measuring.load.target import Target
from perfkit.records import EndState

RECEIVE_BYTES = 1 << 16
_HEAD_LIMIT_BYTES = 1 << 16  # how much of a reply is kept to learn whether the connection's end completes it
_NEVER_NS = 1 << 62
_now_ns = REAL_CLOCK.now_ns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all channels of a run share.

    `record` gets the channel, the outcome, the HTTP status (0 without a reply) and the instant,
    while the channel still describes the request; `freed` gets the channel, ready for another.
    """

    target: Target
    load: Load
    requests: Sequence[RequestParts]
    record: Callable[[Channel, int, int, int], None]
    freed: Callable[[Channel, int], None]


class Channel:
    """One slot for a connection and the request on it. One thread.

    `request_id` is 0 while no request is under way. `failures` counts the requests in a row that
    got no reply, and `fault` says why the last of them did not.
    """

    def __init__(self, site: Site, poller: Poller) -> None:
        self._target = site.target
        self._requests = site.requests
        self._record = site.record
        self._freed = site.freed
        self._poller = poller
        self._keep_alive = site.load.keep_alive
        self._connect_timeout_ns = round(site.load.connect_timeout_s * NS_PER_S)
        self._reply_timeout_ns = round(site.load.reply_timeout_s * NS_PER_S)
        self._socket: socket.socket | None = None
        self._unsent = b""
        self.failures = 0
        self.fault = ""
        self.retry_after_s = 0.0  # what the last reply asked for; only a cautious channel reads it
        self.payload = self.scheduled_ns = self.sent_ns = self.bytes_sent = 0
        self._forget_request()

    def _forget_request(self) -> None:
        self.request_id = 0
        self.deadline_ns = _NEVER_NS
        self.bytes_received = 0
        self._head = b""
        self._messages_begun = 0
        self._replies = 0

    def begin(self, request_id: int, payload: int, scheduled_ns: int, headers: bytes = b"") -> int:
        """Send a request, connecting first where needed; returns the instant at which it was taken up.

        `headers` are further header lines, each with its line break in front.
        """
        self.request_id = request_id
        self.payload = payload
        self.scheduled_ns = scheduled_ns
        parts = self._requests[payload]
        request = b"%b%d%b%b" % (parts.before_id, request_id, headers, parts.after_id)
        begun_ns = _now_ns()
        if self._socket is None:
            self._connect(request, begun_ns)
        else:
            self._send_request(request, begun_ns)
        return begun_ns

    def _connect(self, request: bytes, now_ns: int) -> None:
        self._unsent = request
        self.sent_ns = self.bytes_sent = 0
        self.deadline_ns = now_ns + self._connect_timeout_ns
        try:
            self._socket = socket.socket(self._target.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self._socket.connect_ex(self._target.address)
        except OSError as error:  # out of descriptors
            code = error.errno or errno.EIO
        if self._socket is None or code not in (0, errno.EINPROGRESS):
            self._fail(EndState.CONNECT_FAILED, os.strerror(code), now_ns)
        else:
            self._poller.add(self._socket.fileno(), WRITES, self._on_connected)

    def _on_connected(self, now_ns: int) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._fail(EndState.CONNECT_FAILED, os.strerror(code), now_ns)
            return
        self._send = self._socket.send
        self._receive = self._socket.recv
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self._watch(READS, self._on_readable)
        request, self._unsent = self._unsent, b""
        self._send_request(request, _now_ns())

    def _send_request(self, request: bytes, now_ns: int) -> None:
        self.sent_ns = now_ns
        self.deadline_ns = now_ns + self._reply_timeout_ns
        self.bytes_sent = len(request)
        try:
            taken = self._send(request)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self._fail(EndState.DISCONNECTED, error.strerror, now_ns)
            return
        if taken != len(request):
            self._unsent = request[taken:]
            self._watch(READS | WRITES, self._on_writable)

    def _on_writable(self, now_ns: int) -> None:
        try:
            self._unsent = self._unsent[self._send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(EndState.DISCONNECTED, error.strerror, now_ns)
            return
        if not self._unsent:
            self._watch(READS, self._on_readable)
        # A service may answer before it has read everything (413), so a reply is looked for as well.
        self._on_readable(now_ns)

    def _watch(self, events: int, handler: Handler) -> None:
        assert self._socket is not None
        self._poller.change(self._socket.fileno(), events, handler)

    def _on_readable(self, now_ns: int) -> None:
        try:
            received = self._receive(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(EndState.DISCONNECTED, error.strerror, now_ns)
            return
        if not received:
            self._on_end_of_stream(now_ns)
            return
        self.bytes_received += len(received)
        try:
            self._feed(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._on_unreadable(str(error), now_ns)
            return
        if self._replies:
            self._finish(self._status, now_ns)
        elif self.request_id == 0:
            self._drop_unasked()
        elif len(self._head) < _HEAD_LIMIT_BYTES:
            self._head += received

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._messages_begun += 1

    def on_message_complete(self) -> None:
        """Called by the parser. An interim message (1xx) is not the reply."""
        status = self._parser.get_status_code()
        if status < 200:
            self._messages_begun -= 1
            return
        self._status = status
        self._is_reusable = self._keep_alive and self._parser.should_keep_alive()
        self._replies += 1

    def _on_unreadable(self, reason: str, now_ns: int) -> None:
        if self._replies:  # the reply was whole; what came after it was not HTTP
            self._is_reusable = False
            self._finish(self._status, now_ns)
        else:
            self._fail(EndState.FAILED, reason, now_ns)

    def _on_end_of_stream(self, now_ns: int) -> None:
        status = status_ended_by_close(self._head) if self._head else 0
        if status:
            self._is_reusable = False
            self._finish(status, now_ns)
        else:
            self._fail(EndState.DISCONNECTED, "closed by the service", now_ns)

    def expire(self, now_ns: int) -> None:
        """Give up waiting, for the connection or for the reply."""
        if self.sent_ns:
            self._fail(EndState.TIMED_OUT, "no reply in time", now_ns)
        else:
            self._fail(EndState.CONNECT_FAILED, "no connection in time", now_ns)

    def cancel(self, now_ns: int) -> None:
        """Leave without the reply; without a request under way, only close."""
        self._fail(EndState.CANCELLED, "the generator left", now_ns)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is None:
            return
        if self.sent_ns:
            self.bytes_sent -= len(self._unsent)
        self._unsent = b""
        self._poller.forget(self._socket.fileno())
        self._socket.close()
        self._socket = None

    def _drop_unasked(self) -> None:
        # Bytes that no request asked for could not be told from the next reply.
        self.close()
        self._forget_request()

    def _finish(self, status: int, now_ns: int) -> None:
        if self.request_id == 0:
            self._drop_unasked()
            return
        if not self._is_reusable or self._messages_begun != 1 or self._unsent:
            self.close()
        self.failures = 0
        self._record(self, STATUS_OUTCOMES[status], status, now_ns)
        self._forget_request()
        self._freed(self, now_ns)

    def _fail(self, outcome: EndState, reason: str | None, now_ns: int) -> None:
        if self.request_id == 0:
            self._drop_unasked()
            return
        self.close()
        self.failures += 1
        self.fault = reason or "unknown reason"
        self._record(self, int(outcome), 0, now_ns)
        self._forget_request()
        self._freed(self, now_ns)
