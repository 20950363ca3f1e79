"""R2: are *live* and *ready* two different answers, and right in every state under every load?

Live is 200 from the first moment to the last. Ready is 503 while the model loads and warms up, 200 while requests are
taken (an overloaded service is ready: it says 503 to requests, not to probes), and 503 from the signal on.
Target: 0 wrong answers in 10^4 probes; the reply to a readiness probe at ten times the capacity: P99 at most 50 ms.
"""

from __future__ import annotations

import json
import os
import signal
import time

import numpy as np
import pytest

from perfkit.measuring.load.loops import OpenLoop

TARGET = "0 wrong answers, P99 of ready at 10x load <= 50 ms"
DEPTH = 8
PROBES = ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready")
STARTING, READY, DRAINING = (503, "starting"), (200, ""), (503, "draining")


class Prober:
    """Asks both probes and keeps what was wrong; opens a new connection where the server has closed the last."""

    def __init__(self, dial, port):
        self._dial = dial
        self._port = port
        self._wires = []
        self.asked = 0
        self.wrong = []
        self.ready_s = []
        self.load = {}

    def ask(self, state, ready, times):
        """Both probes so many times in a state where `ready` is the right answer."""
        for _ in range(times):
            for path, right in zip(PROBES, (READY, ready) * 2, strict=True):
                began_s = time.perf_counter()
                status, code = self._answer(path)
                if path == "/health/ready":
                    self.ready_s.append(time.perf_counter() - began_s)
                self.asked += 1
                if (status, code or right[1]) != right:
                    self.wrong.append((state, path, (status, code)))

    def keep_open(self, count):
        """Connections for the time when no new ones are taken."""
        self._wires += [self._dial(self._port) for _ in range(count)]

    def _answer(self, path):
        wire = self._wires.pop() if self._wires else self._dial(self._port)
        status, headers, body = wire.ask(path)
        if headers.get("connection") == "close":
            wire.close()
        else:
            self._wires.append(wire)
        error = json.loads(body).get("error")
        return status, error["code"] if isinstance(error, dict) else ""  # below /v2 an error is only a text


def go_through_all_states(serve, dial, eventually, folder, port, times):
    """One life of a server, probed in every state; returns the prober."""
    changes = {"http.pre_stop_s": 1.0, "queue.depth": DEPTH}
    server = serve("promise_models:Gated", changes=changes, port=port, env={"PERFKIT_GATES": str(folder)}, ready=False)
    eventually(lambda: listens(dial, port))
    prober = Prober(dial, port)
    prober.ask("loading", STARTING, times)
    assert predict(dial, port) == 503
    (folder / "load").touch()
    eventually((folder / "warm.awaited").exists)
    prober.ask("warming up", STARTING, times)
    assert predict(dial, port) == 503
    (folder / "warm").touch()
    server.await_ready()
    prober.ask("idle", READY, times)
    fill(server, dial, eventually)
    assert predict(dial, port) == 503
    prober.ask("queue full", READY, times)
    prober.keep_open(200)
    os.kill(server.pid, signal.SIGTERM)
    eventually(lambda: server.stats()["is_ready"] is False)
    prober.ask("leaving", DRAINING, 40)
    eventually(lambda: not listens(dial, port))
    prober.ask("draining", DRAINING, 10)
    (folder / "work").touch()
    assert server.process.wait(30) == 0
    return prober


def fill(server, dial, eventually):
    """One request in the model's hands and as many waiting as may."""
    for _ in range(DEPTH + 1):
        dial(server.port).post({"input": "wait"})
        eventually(lambda: server.stats()["gauge"]["in_flight"] > server.stats()["queued"])
    eventually(lambda: server.stats()["queued"] == DEPTH)


def predict(dial, port):
    return dial(port).ask("/predict", {"input": 1})[0]


def listens(dial, port):
    try:
        dial(port).close()
    except ConnectionRefusedError:
        return False
    return True


def probe_under_load(serve, dial, generate, times):
    """Ten times what the service can do, by the clock; returns the prober."""
    server = serve("promise_models:Slow", changes={"queue.depth": DEPTH})
    generator = generate(server, OpenLoop(rate_rps=2000.0, max_connections=256), 120.0)
    prober = Prober(dial, server.port)
    while server.stats()["counters"]["rejected"] < 100:
        assert not generator.wait_briefly(0.01)
    before, first_s = server.stats()["counters"], time.monotonic()
    for _ in range(times):
        assert not generator.wait_briefly(0.002)  # spread over the load, which has its ups and downs
        prober.ask("10x load", READY, 1)
    after, seconds = server.stats()["counters"], time.monotonic() - first_s
    prober.load = {f"{name}_rps": (after[name] - before[name]) / seconds for name in ("accepted", "ok")}
    return prober


def check(told, probers):
    wrong = [answer for prober in probers for answer in prober.wrong]
    probes = sum(prober.asked for prober in probers)
    p99_s = float(np.quantile(probers[-1].ready_s, 0.99))
    told("R2", TARGET, probes=probes, wrong=len(wrong), ready_p99_s=p99_s, **probers[-1].load)
    assert wrong == []


def test_probes_are_answered_right_in_every_state(serve, dial, generate, told, tmp_path, free_port, eventually):
    life = go_through_all_states(serve, dial, eventually, tmp_path, free_port, 25)
    check(told, [life, probe_under_load(serve, dial, generate, 100)])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_probes_are_answered_right(serve, dial, generate, told, tmp_path, free_port, eventually):
    life = go_through_all_states(serve, dial, eventually, tmp_path, free_port, 450)
    check(told, [life, probe_under_load(serve, dial, generate, 700)])


def test_the_prober_notices_a_wrong_answer(serve, dial):
    """The control of the tests above."""
    prober = Prober(dial, serve().port)
    prober.ask("idle", STARTING, 1)
    assert prober.wrong == [("idle", "/health/ready", READY), ("idle", "/v2/health/ready", READY)]
