"""Do bytes become whole requests within limits, whatever the client sends and however it is cut?

The connection is driven without a socket: the transport is scripted, so every order of events can be
played. What needs a real client is in test_http.py.
"""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.serving.server.connection import Connection
from perfkit.serving.server.front import Front
from perfkit.serving.server.replies import response
from perfkit.settings.surroundings import HttpSettings

SECOND = 1_000_000_000
LIMIT = 1000
POST = b"POST /predict HTTP/1.1\r\nHost: a\r\n"


class Transport:
    """Keeps what is written, and refuses what a real one refuses."""

    def __init__(self):
        self.written = b""
        self.is_reading = True
        self.has_ended = False
        self.is_aborted = False
        self._is_closing = False

    def write(self, data):
        assert not self.has_ended, "nothing may be written after the end"
        self.written += data

    def write_eof(self):
        self.has_ended = True

    def close(self):
        self._is_closing = True

    def abort(self):
        self.is_aborted = self._is_closing = True

    def is_closing(self):
        return self._is_closing

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True

    def get_extra_info(self, name):
        return None


class Client:
    """One connection, and a server behind it that answers when the test says so, or at once."""

    def __init__(self, *, answers_at_once=False, **limits):
        self.requests = []
        self.answers_at_once = answers_at_once
        limits = {"max_body_bytes": LIMIT, "request_timeout_s": 10.0, "keep_alive_s": 75.0} | limits
        self.front = Front(HttpSettings(**limits), self._handle)
        self.connection = Connection(self.front)
        self.transport = Transport()
        self.connection.connection_made(self.transport)
        self.send = self.connection.data_received

    def _handle(self, request):
        self.requests.append(request)
        if self.answers_at_once:
            self.answer(request)

    def answer(self, request):
        body = request.target
        closes = not request.keeps_alive
        return self.connection.answer(response(200, body, closes=closes), closes=closes)

    @property
    def answers(self):
        """(status, body or error code) of everything that was written, in order; 100 Continue too."""
        found, rest = [], self.transport.written
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
            body, rest = rest[:length], rest[length:]
            status = int(head.split()[1])
            found.append((status, json.loads(body)["error"]["code"] if status >= 400 else body.decode()))
        return found

    @property
    def bodies(self):
        return [bytes(request.body) for request in self.requests]


def chunked(*parts):
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def sized(body):
    return POST + b"Content-Length: %d\r\n\r\n" % len(body) + body


def get(target):
    return b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target


def test_a_whole_request_reaches_the_handler_as_it_came():
    client = Client()
    client.send(b"POST /predict?x=1 HTTP/1.1\r\nHost: a\r\nX-Mine: Some Value\r\nContent-Length: 5\r\n\r\nhello")
    (request,) = client.requests
    assert request[1:5] == (
        b"POST",
        b"/predict?x=1",
        {b"host": b"a", b"x-mine": b"Some Value", b"content-length": b"5"},
        b"hello",
    )
    assert request.keeps_alive


STREAM = sized(b"first") + chunked(b"sec", b"ond") + get(b"/third") + sized(b"") + chunked(b"fif", b"t", b"h")


@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
def test_requests_are_the_same_however_the_stream_is_cut(cuts):
    client = Client(answers_at_once=True)
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        if start < end:
            client.send(STREAM[start:end])
    assert client.bodies == [b"first", b"second", b"", b"", b"fifth"]
    assert [status for status, _ in client.answers] == [200] * 5
    assert client.front.errors == 0


def test_pipelined_requests_are_worked_on_one_after_the_other():
    client = Client()
    client.send(get(b"/1") + get(b"/2") + get(b"/3"))
    for count in (1, 2, 3):
        assert len(client.requests) == count
        client.answer(client.requests[-1])
    assert client.answers == [(200, "/1"), (200, "/2"), (200, "/3")]


def test_a_thousand_requests_behind_a_slow_one_are_no_deep_recursion():
    client = Client()
    client.send(get(b"/slow") + get(b"/x") * 1000)
    client.answers_at_once = True
    client.answer(client.requests[0])
    assert client.answers == [(200, "/slow")] + [(200, "/x")] * 1000


def test_a_client_with_many_requests_waiting_is_not_read_until_they_are_fewer():
    client = Client()
    client.send(get(b"/x") * 65)
    assert client.transport.is_reading is False
    client.answer(client.requests[-1])
    assert client.transport.is_reading is True


def test_too_many_requests_at_once_are_refused_after_those_before_were_answered():
    client = Client()
    client.send(get(b"/x") * 1500)
    client.answers_at_once = True
    client.answer(client.requests[0])
    assert client.answers == [(200, "/x")] * 1025 + [(400, "pipelined")]


def test_a_refusal_waits_for_the_answer_before_it():
    client = Client()
    client.send(get(b"/good") + b"NONSENSE\r\n\r\n")
    assert client.answers == []
    client.answer(client.requests[0])
    assert (client.answers, client.transport.has_ended) == ([(200, "/good"), (400, "bad_http")], True)


def test_a_refusal_is_dropped_when_the_answer_before_it_closes_the_connection():
    client = Client()
    client.send(b"GET /last HTTP/1.1\r\nConnection: close\r\n\r\n" + get(b"/more"))
    client.answer(client.requests[0])
    assert (client.answers, client.transport.is_closing()) == ([(200, "/last")], True)


def test_nothing_after_a_refusal_is_taken():
    client = Client()
    client.send(b"NONSENSE\r\n\r\n" + get(b"/x"))
    client.send(get(b"/y"))
    assert (client.requests, client.answers, client.front.errors) == ([], [(400, "bad_http")], 1)


def test_a_handler_that_fails_costs_its_client_the_connection_and_nobody_else():
    client = Client()
    client.front.handle = lambda request: 1 / 0
    client.send(get(b"/x") + get(b"/y"))
    assert (client.answers, client.transport.is_closing()) == ([(500, "internal")], True)


@pytest.mark.parametrize("form", [sized, chunked])
def test_the_largest_body_is_taken_and_one_byte_more_is_refused(form):
    for size, answers in ((LIMIT - 1, []), (LIMIT, []), (LIMIT + 1, [(413, "body_too_large")])):
        client = Client()
        client.send(form(b"x" * size))
        assert (client.answers, client.bodies) == (answers, [] if answers else [b"x" * size])


def test_a_body_that_announces_itself_as_too_large_is_refused_before_it_comes():
    client = Client()
    client.send(POST + b"Content-Length: 20000000\r\n\r\n")
    assert client.answers == [(413, "body_too_large")]


def test_the_limit_of_the_body_may_change_while_connections_are_open():
    client = Client()
    client.front.limits = HttpSettings(max_body_bytes=3)
    client.send(sized(b"four"))
    assert client.answers == [(413, "body_too_large")]


def test_a_body_of_single_bytes_costs_no_more_memory_than_the_body():
    client = Client(max_body_bytes=1 << 20)
    part = b"1\r\nx\r\n" * 1000
    tracemalloc.start()
    client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(100):
        client.send(part)
    client.send(b"0\r\n\r\n")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert client.bodies == [b"x" * 100_000]
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize(
    "flood",
    [
        b"X-Long: " + b"y" * 1000 + b"\r\n",
        b"X-Endless-Name" * 100,
        b"a:b\r\n" * 200,
    ],
    ids=["many headers", "one endless name", "tiny headers"],
)
def test_a_flood_of_headers_is_refused(flood):
    client = Client()
    client.send(POST)
    sent = 0
    while not client.answers:
        client.send(flood)
        sent += len(flood)
        assert sent < 100_000
    assert client.answers == [(431, "headers_too_large")]


def test_headers_that_come_in_two_halves_are_counted_together():
    client = Client()
    client.send(POST + b"X-One: " + b"y" * 60_000 + b"\r\n")
    client.send(b"X-Two: " + b"y" * 20_000 + b"\r\n\r\n")
    assert client.answers == [(431, "headers_too_large")]


def test_a_flood_of_trailers_is_refused_too():
    client = Client()
    client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Trailer: ")
    for _ in range(70):
        client.send(b"y" * 1000)
    assert client.answers == [(431, "headers_too_large")]


def test_trailers_do_not_change_the_headers():
    client = Client()
    client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nAuthorization: Bearer me\r\n\r\n")
    assert [set(request.headers) for request in client.requests] == [{b"host", b"transfer-encoding"}]


def test_headers_below_the_limit_are_taken_in_one_piece_or_in_many():
    headers = b"".join(b"X-%d: %b\r\n" % (number, b"y" * 990) for number in range(60))
    whole = b"GET /x HTTP/1.1\r\n" + headers + b"\r\n"
    for step in (len(whole), 5_000):
        client = Client(answers_at_once=True)
        for start in range(0, len(whole), step):
            client.send(whole[start : start + step])
        assert client.answers == [(200, "/x")]


def test_headers_in_one_large_segment_are_refused_as_well():
    client = Client()
    client.send(b"GET /x HTTP/1.1\r\nX-Long: " + b"y" * 70_000 + b"\r\n\r\n")
    assert client.answers == [(431, "headers_too_large")]


def test_a_large_segment_of_many_requests_is_not_mistaken_for_large_headers():
    client = Client(answers_at_once=True)
    one = sized(b"x" * 900)
    stream = one * 200
    client.send(stream[:-5])
    client.send(stream[-5:])
    assert client.answers == [(200, "/predict")] * 200


@pytest.mark.parametrize(
    "dubious",
    [
        POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: identity\r\n\r\nhello",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 0x5\r\n\r\nhello",
        POST + b"Content-Length: 18446744073709551616\r\n\r\nhello",
        POST + b"Content-Length: 5, 5\r\n\r\nhello",
        POST + b"X: a\r\n  folded\r\n\r\n",
        POST + b"X: a\x00b\r\n\r\n",
        POST + b"X\x00: a\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_request_whose_end_could_be_disputed_is_refused(dubious):
    client = Client(answers_at_once=True)
    client.send(dubious)
    assert (client.requests, client.answers) == ([], [(400, "bad_http")])


@pytest.mark.parametrize(
    "request_bytes",
    [b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", POST + b"Upgrade: websocket\r\n\r\n"],
)
def test_a_change_of_protocol_is_refused(request_bytes):
    client = Client()
    client.send(request_bytes)
    assert (client.requests, client.answers) == ([], [(400, "upgrade")])


def test_a_length_with_any_number_of_zeros_in_front_is_that_length():
    client = Client()
    client.send(POST + b"Content-Length: " + b"0" * 5000 + b"5\r\n\r\nhello")
    assert client.bodies == [b"hello"]


@settings(max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([get(b"/x"), sized(b"abc"), chunked(b"ab", b"c"), POST, b"\r\n", b"0\r\n\r\n", b"GET "]),
        ),
        max_size=10,
    )
)
def test_no_bytes_whatever_break_the_connection(segments):
    """Every whole request is answered before any refusal, and at most one refusal ends it all."""
    client = Client(answers_at_once=True)
    for segment in segments:
        client.send(segment)
    statuses = [status for status, _ in client.answers if status != 100]
    assert statuses[: len(client.requests)] == [200] * len(client.requests)
    assert [status >= 400 for status in statuses[len(client.requests) :]] in ([], [True])
    client.connection.connection_lost(None)
    assert client.front.connections == set()


def test_a_request_that_does_not_come_whole_in_time_is_refused():
    client = Client(request_timeout_s=2.0)
    client.send(POST + b"Content-Length: 9\r\n\r\nhel")
    began_ns = client.connection._accepted_ns
    client.connection.enforce_deadlines(began_ns + 2 * SECOND)
    assert client.answers == []
    client.send(b"lo")
    client.connection.enforce_deadlines(began_ns + 2 * SECOND + 1)
    assert client.answers == [(408, "slow_request")], "a byte now and then does not help"


def test_a_refused_client_may_go_on_sending_for_a_while_before_it_is_cut_off():
    client = Client()
    client.send(POST + b"Content-Length: 20000000\r\n\r\n")
    refused_ns = client.connection._now_ns()
    client.connection.enforce_deadlines(refused_ns + 2 * SECOND)
    assert client.transport.is_aborted is False
    client.connection.enforce_deadlines(refused_ns + 4 * SECOND)
    assert client.transport.is_aborted is True


def test_an_idle_connection_is_closed_and_a_busy_one_is_not():
    idle, busy = Client(keep_alive_s=5.0), Client(keep_alive_s=5.0)
    busy.send(get(b"/x"))
    for client in (idle, busy):
        client.connection.enforce_deadlines(client.connection._now_ns() + 6 * SECOND)
    assert (idle.transport.is_closing(), busy.transport.is_closing()) == (True, False)


def test_a_client_that_does_not_read_is_not_answered_further_and_at_last_cut_off():
    client = Client(answers_at_once=True, keep_alive_s=5.0)
    client.send(get(b"/1"))
    client.connection.pause_writing()
    client.send(get(b"/2"))
    assert (client.answers, client.transport.is_reading) == ([(200, "/1")], False)
    client.connection.resume_writing()
    assert (client.answers, client.transport.is_reading) == ([(200, "/1"), (200, "/2")], True)
    client.connection.pause_writing()
    now_ns = client.connection._now_ns()
    client.connection.enforce_deadlines(now_ns + 6 * SECOND)
    assert (client.transport.is_closing(), client.transport.is_aborted) == (True, False)
    client.connection.enforce_deadlines(now_ns + 12 * SECOND)
    assert client.transport.is_aborted is True


def test_a_client_that_leaves_is_reported_once_to_whoever_works_for_it():
    client, told = Client(), []
    client.send(get(b"/x") + get(b"/never"))
    client.connection.on_gone = lambda: told.append("gone")
    client.connection.connection_lost(None)
    client.answer(client.requests[0])
    assert (told, client.answers, len(client.requests)) == (["gone"], [], 1)


def test_the_end_of_a_clients_stream_means_that_it_has_left():
    client = Client()
    client.send(get(b"/x"))
    client.connection.eof_received()
    client.answer(client.requests[0])
    assert (client.answers, client.connection.is_gone, client.transport.is_closing()) == ([], True, True)


@pytest.mark.parametrize(
    ("request_bytes", "keeps_alive"),
    [
        (get(b"/x"), True),
        (b"GET /x HTTP/1.1\r\nConnection: close\r\n\r\n", False),
        (b"GET /x HTTP/1.0\r\n\r\n", False),
        (b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_the_connection_stays_only_when_both_sides_would_have_it(request_bytes, keeps_alive):
    client = Client(answers_at_once=True)
    client.send(request_bytes)
    assert (client.answers, client.transport.is_closing()) == ([(200, "/x")], not keeps_alive)
    assert (b"connection: close" in client.transport.written) is not keeps_alive


def test_a_client_that_asks_first_is_told_to_go_on_when_its_turn_has_come():
    client = Client()
    client.send(get(b"/first") + POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    assert client.answers == []
    client.answer(client.requests[0])
    assert client.answers == [(200, "/first"), (100, "")]
    client.send(b"hello")
    client.answer(client.requests[1])
    assert client.answers == [(200, "/first"), (100, ""), (200, "/predict")]


def test_a_client_that_asks_first_learns_that_its_body_is_too_large():
    client = Client()
    client.send(POST + b"Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n")
    assert client.answers == [(413, "body_too_large")]


def test_draining_lets_the_present_answer_be_the_last_of_its_connection():
    client = Client(answers_at_once=True)
    client.send(get(b"/before"))
    client.front.drain()
    client.send(get(b"/after"))
    assert client.answers == [(200, "/before"), (200, "/after")]
    assert client.transport.is_closing() is True


def test_a_half_arrived_request_keeps_its_connection_open_when_idle_ones_are_closed():
    idle, half = Client(), Client()
    half.send(POST)
    for client in (idle, half):
        client.connection.close_if_idle()
    assert (idle.transport.is_closing(), half.transport.is_closing()) == (True, False)


def test_the_independent_latency_counts_from_the_first_byte_of_the_request():
    client = Client()
    client.connection._now_ns = iter(range(1_000, 2_000, 100)).__next__
    client.send(POST + b"Content-Length: 2\r\n\r\n")  # 1000: its first byte; 1100: accepted
    client.send(b"hi")
    answered_ns = client.answer(client.requests[0])
    assert (client.connection.arrived_ns, answered_ns) == (1_000, 1_200)
