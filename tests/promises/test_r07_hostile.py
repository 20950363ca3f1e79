"""R7: does hostile input neither crash nor wedge the server?

Requests broken in seeded ways go over real sockets, hundreds at a time; after each block a well-formed request must
be answered right. Target: 10^5 hostile requests, 0 crashes, 0 undeclared 5xx, 0 connections that are still open after
twice the time-out. The parsers alone are tried in process as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import selectors
import socket
import struct
import time
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutator import AMBIGUOUS, CONTROL_SEEDS, SEEDS, hostile
from promise_models import Tensors

from perfkit.serving.server.adapter import complete
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request
from perfkit.serving.server.oip.request import read_infer
from perfkit.serving.server.plain import read_document, read_id, read_inputs
from perfkit.settings.server import ServerSettings

TARGET = "0 crashes, 0 undeclared 5xx, 0 hangs over twice the time-out"
DECLARED = {100, 200, 400, 403, 404, 405, 408, 413, 415, 422, 429, 431, 503, 504}
TIMEOUT_S = 3.0
HELPERS = min(32, (os.cpu_count() or 1) + 4)  # threads that the event loop keeps for what blocks
PATIENCE_S = 60.0
MODEL = "promise_models:Tensors"
QUICK = {"http.request_timeout_s": TIMEOUT_S, "http.keep_alive_s": 0.2, "queue.depth": 10_000}


class Block:
    """Many hostile connections at once; each is followed until the server ends it."""

    def __init__(self, port, chance, size):
        self._selector = selectors.DefaultSelector()
        self.received = {}
        self.lifetimes_s = []
        self._clients = [(self._connect(port), hostile(chance), chance.random()) for _ in range(size)]

    def _connect(self, port):
        client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.received[client] = b""
        return client

    def run(self):
        """Send everything, piece by piece in turns, then read until every connection has ended or patience has."""
        for turn in range(4):
            for client, pieces, _ in self._clients:
                if turn < len(pieces):
                    with contextlib.suppress(ConnectionError):
                        client.sendall(pieces[turn])
        began_s = time.monotonic()
        for client, _, mood in self._clients:
            if mood < 0.2:
                hang_up(client, abruptly=mood < 0.1)
            else:
                self._selector.register(client, selectors.EVENT_READ)
        while self._selector.get_map() and time.monotonic() - began_s < PATIENCE_S:
            for key, _ in self._selector.select(timeout=1.0):
                self._read(key.fileobj, began_s)
        return self

    def _read(self, client, began_s):
        try:
            data = client.recv(1 << 16)
        except ConnectionError:
            data = b""
        self.received[client] += data
        if not data:
            self._selector.unregister(client)
            client.close()
            self.lifetimes_s.append(time.monotonic() - began_s)

    @property
    def hanging(self):
        """How many connections the server has not ended."""
        return len(self._selector.get_map())

    def close(self):
        for client in self.received:
            client.close()
        self._selector.close()


def hang_up(client, *, abruptly):
    if abruptly:  # a reset instead of an orderly end
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def statuses_of(data):
    """The statuses of a stream of answers, which must be whole and nothing else; the last may lack its body (HEAD)."""
    found = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert head.startswith(b"HTTP/1.1 "), head[:100]
        assert separator, head[-100:]
        found.append(int(lines[0].split()[1]))
        lengths = [int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:")]
        data = data[lengths[0] if lengths else 0 :]
    return found


def attack(server, requests, size, seed):
    """So many hostile streams in blocks of a size; returns the figures and what was wrong."""
    chance = random.Random(seed)
    counts, wrong, longest_s, hangs = {}, [], 0.0, 0
    for _ in range(requests // size):
        block = Block(server.port, chance, size).run()
        hangs += block.hanging
        longest_s = max(longest_s, *block.lifetimes_s)
        for data in block.received.values():
            for status in statuses_of(data):
                counts[status] = counts.get(status, 0) + 1
                if status not in DECLARED:
                    wrong.append((status, data))
        block.close()
        assert is_well(server)
    return counts, wrong, longest_s, hangs


def is_well(server):
    """Whether a well-formed request is answered right."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
        body = b'{"input": [1], "id": "well"}'
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        client.sendall(head % len(body) + body)
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    return answer.endswith(b'\r\n\r\n{"id":"well","output":[0.25,0.75]}')


def check(server, told, eventually, requests, size=500):
    threads = psutil.Process(server.pid).num_threads()
    counts, wrong, longest_s, hangs = attack(server, requests, size, seed=requests)
    undeclared = len(wrong)
    told(
        "R7", TARGET, requests=requests, undeclared=undeclared, hangs=hangs, longest_s=longest_s,
        answers=dict(sorted(counts.items())), crashed=server.process.poll() is not None,
    )  # fmt: skip
    assert (wrong[:3], hangs, server.process.poll()) == ([], 0, None)
    eventually(lambda: server.stats()["gauge"]["in_flight"] == 0)
    stats = server.stats()
    assert (stats["admitted"], stats["queued"], stats["counters"]["failed"]) == (0, 0, 0)
    assert psutil.Process(server.pid).num_threads() <= threads + HELPERS
    assert "Traceback" not in server.log.read_text()
    return longest_s


def test_two_thousand_hostile_requests_break_nothing(serve, told, eventually):
    check(serve(MODEL, changes=QUICK | {"http.request_timeout_s": 0.3}), told, eventually, 2_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_hostile_requests_break_nothing(serve, told, eventually):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a thousand connections at once, in the server too
    assert check(serve(MODEL, changes=QUICK), told, eventually, 100_000, 1_000) <= 2 * TIMEOUT_S


def test_the_attack_notices_a_server_that_breaks(serve):
    """The control of the tests above: a server whose parsing raises on numbers that do not fit."""
    server = serve(MODEL, changes=QUICK | {"http.request_timeout_s": 0.3}, env={"PERFKIT_CHOKES": "1"})
    _, wrong, _, _ = attack(server, 100, 100, seed=1)
    assert {status for status, _ in wrong} == {500}


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_what_is_broken_was_whole_before(hardened, dial, number):
    """A mutation of nonsense would prove little."""
    wire = dial(hardened.port)
    wire.send(SEEDS[number])
    assert set(statuses_of(wire.rest())) <= {100, 200, 405}  # HEAD is understood, and declined


@pytest.mark.parametrize("number", range(len(AMBIGUOUS)))
def test_a_stream_that_could_hide_a_request_is_refused_whole(hardened, dial, number):
    wire = dial(hardened.port)
    wire.send(AMBIGUOUS[number])
    assert statuses_of(wire.rest()) == [400]


def test_the_control_port_withstands_it_too(serve):
    server, chance = serve(MODEL, changes=QUICK), random.Random(3)
    port = int(server.control.url.rpartition(":")[2])
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            for piece in hostile(chance, CONTROL_SEEDS):
                with contextlib.suppress(ConnectionError):
                    client.sendall(piece)
    assert server.control.get("/settings")["model"] == MODEL
    assert is_well(server)
    assert "Traceback" not in server.log.read_text()


@pytest.fixture(scope="module")
def hardened(serve_module):
    """A server shared by the tests that send one thing each."""
    return serve_module(MODEL, changes=QUICK)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["input", "inputs", "id"]), inner),
)
BODIES = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.dictionaries(st.sampled_from(["input", "inputs", "id", "other"]), JSON).map(
        lambda value: json.dumps(value).encode()
    ),
)
HEADERS = st.dictionaries(
    st.sampled_from([b"content-type", b"content-encoding", b"perfkit-id", b"host"]),
    st.binary(max_size=30) | st.sampled_from([b"application/json", b"application/json; charset=utf-8"]),
)


@given(BODIES, HEADERS)
def test_whatever_a_body_holds_it_is_read_or_refused_in_words(body, headers):
    request = Request(None, b"POST", b"/predict", headers, body, 0, True)
    with contextlib.suppress(MalformedRequest):
        document = read_document(request)
        assert 1 <= len(read_inputs(document, 10)) <= 10
        assert isinstance(read_id(document), bytes)


TENSORS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["numbers", "texts", "scores"]) | JSON,
        "datatype": st.sampled_from(["FP32", "BYTES"]) | JSON,
        "shape": st.lists(st.integers(-1, 3), max_size=3) | JSON,
        "data": st.lists(st.floats(-1, 1) | st.text(max_size=3), max_size=4) | JSON,
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": st.integers(-1, 40) | JSON}) | JSON,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {"inputs": st.lists(TENSORS, max_size=3) | JSON},
    optional={"outputs": st.lists(TENSORS, max_size=2) | JSON, "id": st.text(max_size=3) | JSON, "parameters": JSON},
)
LENGTHS = st.integers(-1, 400).map(lambda length: b"%d" % length) | st.binary(max_size=8)


@given(DOCUMENTS, st.binary(max_size=40), st.none() | LENGTHS)
def test_whatever_a_request_in_tensors_holds_it_is_read_or_refused_in_words(document, tail, length):
    head = json.dumps(document).encode("utf-8", "surrogatepass")
    headers = {b"inference-header-content-length": b"%d" % len(head) if length is None else length}
    request = Request(None, b"POST", b"/v2/models/x/infer", headers, head + tail, 0, True)
    service = SimpleNamespace(model=complete(Tensors()), settings=ServerSettings(model=MODEL))
    with contextlib.suppress(MalformedRequest):
        assert read_infer(service, request).payloads != []
