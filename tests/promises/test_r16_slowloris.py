"""R16: are clients that send a byte now and then cut off, and does nobody else notice them?

A whole request has one absolute deadline, which a byte does not renew. Target: 500 connections that send 1 byte a
second are each closed within 10 s (deadline 9 s), and the P99 of good requests is at most 1.5
times what it is without them. 500 idle connections cost no throughput.
"""

from __future__ import annotations

import contextlib
import selectors
import statistics
import threading
import time

import numpy as np
import pytest

from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.load.samples import read_samples

TARGET = "each of 500 closed within 10 s with 408; good P99 <= 1.5x; idle connections cost no throughput"
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"


class Drip:
    """Many connections that send one byte a turn, half of them in their headers, half in their bodies."""

    def __init__(self, dial, port, count):
        self._selector = selectors.DefaultSelector()
        self._began_s = time.monotonic()
        self._stopped = threading.Event()
        self.lifetimes_s = []
        self.received = []
        for number in range(count):
            wire = dial(port)
            wire.send(HEAD if number % 2 else HEAD[:1])
            self._selector.register(wire.socket, selectors.EVENT_READ, [b""])
        self._thread = threading.Thread(target=self._run, name="drip")

    def _run(self):
        turn = 0
        while self._selector.get_map() and not self._stopped.is_set():
            turn += 1
            for key in list(self._selector.get_map().values()):
                with contextlib.suppress(ConnectionError):
                    key.fileobj.send(HEAD[turn : turn + 1])
            due_s = self._began_s + turn
            while (left_s := due_s - time.monotonic()) > 0 and self._selector.get_map():
                for key, _ in self._selector.select(left_s):
                    self._read(key)

    def _read(self, key):
        try:
            data = key.fileobj.recv(1 << 16)
        except ConnectionError:
            data = b""
        key.data[0] += data
        if not data:
            self._selector.unregister(key.fileobj)
            self.lifetimes_s.append(time.monotonic() - self._began_s)
            self.received.append(key.data[0][:12])

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self._selector.close()

    def wait(self):
        """Until all have been cut off."""
        self._thread.join(60)
        return self


def measure(generate, server, seconds):
    """Throughput and P99 of good clients for a while."""
    generator = generate(server, ClosedLoop(concurrency=4), seconds)
    assert generator.wait_briefly(seconds + 30)
    report, samples = generator.report(), read_samples(generator.spec.samples)
    assert set(report["outcomes"]) == {"ok"}
    latencies_s = (samples["received_ns"] - samples["sent_ns"]) / 1e9
    return len(latencies_s) / report["wall_s"], float(np.quantile(latencies_s, 0.99))


def interleave(generate, server, rounds, seconds, disturbed):
    """Rounds with and without the disturbance, in turns: the ratio of throughputs and of P99s, as medians."""
    ratios = []
    for _ in range(rounds):
        calm = measure(generate, server, seconds)
        with disturbed():
            busy = measure(generate, server, seconds)
        ratios.append((busy[0] / calm[0], busy[1] / calm[1]))
    return statistics.median(ratio[0] for ratio in ratios), statistics.median(ratio[1] for ratio in ratios)


def test_slow_clients_are_cut_off_at_their_deadline(serve, dial, told):
    server = serve(changes={"http.request_timeout_s": 0.3})
    with Drip(dial, server.port, 100) as drip:
        assert dial(server.port).ask("/predict", {"input": 1})[0] == 200
        drip.wait()
    told("R16", TARGET, clients=100, deadline_s=0.3, last_closed_s=max(drip.lifetimes_s))
    assert drip.received == [b"HTTP/1.1 408"] * 100
    assert dial(server.port).ask("/predict", {"input": 1})[0] == 200


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_five_hundred_slow_clients_are_cut_off_and_cost_others_little(serve, dial, generate, told):
    server = serve(changes={"http.request_timeout_s": 9.0})
    drips = []

    def disturbed():
        drips.append(Drip(dial, server.port, 500))
        return drips[-1]

    _, p99_ratio = interleave(generate, server, 3, 5.0, disturbed)
    with disturbed() as drip:
        drip.wait()
    told("R16", TARGET, clients=500, last_closed_s=max(drip.lifetimes_s), good_p99_ratio=p99_ratio)
    assert drip.received == [b"HTTP/1.1 408"] * 500
    assert max(drip.lifetimes_s) < 10
    assert p99_ratio <= 1.5


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_five_hundred_idle_connections_cost_no_throughput(serve, dial, generate, told):
    server = serve()

    @contextlib.contextmanager
    def disturbed():
        wires = [dial(server.port) for _ in range(500)]
        for wire in wires:
            assert wire.ask("/health/live")[0] == 200
        yield
        for wire in wires:
            wire.close()

    throughput_ratio, p99_ratio = interleave(generate, server, 5, 4.0, disturbed)
    told("R16", TARGET, idle=500, throughput_ratio=throughput_ratio, p99_ratio=p99_ratio)
    assert throughput_ratio > 0.95


def test_the_clock_of_the_slow_clients_notices_a_server_that_waits(serve, dial):
    """The control of the tests above: with a long deadline they are still there."""
    server = serve(changes={"http.request_timeout_s": 60.0})
    with Drip(dial, server.port, 10) as drip:
        threading.Event().wait(1.6)
    assert drip.lifetimes_s == []
