"""Does the server keep its memory, its threads and its temper under clients that mean it no good?"""

from __future__ import annotations

import random
import threading

import psutil
import pytest

pytestmark = pytest.mark.slow
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MIB = 1 << 20


def is_serving(wire):
    wire.post({"input": 1})
    return wire.answer().status == 200


def test_a_million_chunks_of_one_byte_cost_little_memory(lab, dial):
    process = psutil.Process(lab.pid)
    assert is_serving(dial(lab))
    before_bytes, most_bytes = process.memory_info().rss, 0
    wire = dial(lab)
    wire.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(1_000):
        wire.send(b"1\r\nx\r\n" * 1_000)
        most_bytes = max(most_bytes, process.memory_info().rss)
    wire.send(b"0\r\n\r\n")
    assert wire.answer().code == (400, "bad_json")
    assert most_bytes - before_bytes < 16 * MIB


def test_the_measure_of_memory_sees_what_a_body_holds(lab, dial):
    """The control of the test above: this much is noticed."""
    process = psutil.Process(lab.pid)
    assert is_serving(dial(lab))
    before_bytes = process.memory_info().rss
    for _ in range(4):
        wire = dial(lab)
        wire.send(HEAD + b"Content-Length: 8000000\r\n\r\n" + b"x" * 7_900_000)
    threading.Event().wait(0.5)
    assert process.memory_info().rss - before_bytes > 16 * MIB


def test_five_hundred_slow_clients_hold_nobody_up_and_are_cut_off(lab, dial, eventually):
    lab.configure({"http.request_timeout_s": 2.0})
    slow = [dial(lab) for _ in range(500)]
    for wire in slow:
        wire.send(HEAD[:20])
    good = dial(lab)
    for _ in range(50):
        assert is_serving(good)
    assert [wire.answer().code for wire in slow] == [(408, "slow_request")] * 500
    assert all(wire.is_at_end() for wire in slow)
    for wire in slow:
        wire.close()
    assert is_serving(good)


SEEDS = [
    HEAD + b'Content-Length: 14\r\n\r\n{"input": [1]}',
    HEAD + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"input\r\n7\r\n": [1]}\r\n0\r\n\r\n',
    b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.0\r\n\r\n",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
]
PARTS = [
    b"\r\n",
    b"\n",
    b"\0",
    b"\xff" * 8,
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"0\r\n\r\n",
    b"[" * 99,
]


def mutated(chance):
    """One to three requests with a few bytes changed, inserted, doubled or cut."""
    data = bytearray(b"".join(chance.choices(SEEDS, k=chance.randint(1, 3))))
    for _ in range(chance.randint(0, 4)):
        at = chance.randrange(len(data) + 1)
        deed = chance.randrange(4)
        if deed == 0 and at < len(data):
            data[at] = chance.randrange(256)
        elif deed == 1:
            data[at:at] = chance.choice(PARTS)
        elif deed == 2:
            data[at:at] = data[at : at + chance.randrange(60)]
        else:
            del data[at : at + chance.randrange(20)]
    return bytes(data)


def test_ten_thousand_mutated_requests_break_nothing(lab, dial, eventually):
    chance = random.Random(1)
    before, threads = lab.stats(), psutil.Process(lab.pid).num_threads()
    undeclared = []
    for _ in range(10_000):
        wire = dial(lab)
        wire.socket.settimeout(0.001)
        wire.send(mutated(chance))
        try:
            received = wire.socket.recv(65536)
        except (TimeoutError, ConnectionError):
            received = b""
        if received[9:10] == b"5":
            undeclared.append(received)
        wire.close()
    assert undeclared == []
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 0)
    assert is_serving(dial(lab))
    after = lab.stats()
    assert after["http_errors"] > before["http_errors"]
    assert (after["admitted"], after["queued"], after["counters"]["failed"]) == (0, 0, before["counters"]["failed"])
    assert psutil.Process(lab.pid).num_threads() <= threads
