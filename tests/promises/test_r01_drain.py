"""R1: does a signal lose no accepted request, whenever it comes?

SIGTERM: readiness says 503 first, the listener stays for `http.pre_stop_s`, then refuses; what is in flight
finishes; exit code 0. Target: 0 accepted requests lost at 200 random points under open load, exit within 25 s.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psutil
import pytest

from perfkit.measuring.load.loops import OpenLoop
from perfkit.measuring.load.samples import read_samples

TARGET = "0 accepted lost, exit code 0 within 25 s"
SETTINGS = (
    {"preprocess.placement": "processes", "postprocess.placement": "processes"},
    {"concurrency.model": "processes", "workers": 2, "batch.max_size": 4},
    {},
    {"batch.max_size": 8, "batch.max_delay_s": 0.005},
    {"workers": 2, "preprocess.placement": "threads", "postprocess.placement": "threads"},
    {"queue.depth": 4, "queue.policy": "block"},
    {"queue.depth": 4, "queue.policy": "drop_oldest"},
    {"concurrency.model": "thread_per_request"},
    {"queue.depth": 4, "queue.policy": "caller_runs"},
    {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 4, "queue.depth": 4},
    {"concurrency.model": "asyncio", "workers": 2, "batch.max_size": 4},
    {"queue.depth": 4, "queue.policy": "shed", "queue.deadline_s": 0.05},
    {"concurrency.model": "serial"},
    {"limits.policy": "adaptive", "limits.bucket_rps": 500.0},
    {"queue.depth": 8},
)


def drain_once(serve, generate, witness, chance, changes, **env):
    """One signal at a random point: what the server counted, what its client got, and how long the end took."""
    server = serve("promise_models:Witness", changes=changes, env=env | {"PERFKIT_WITNESS": str(witness)})
    warm_up_calls = witness.stat().st_size
    load = OpenLoop(rate_rps=chance.choice([200.0, 600.0, 2000.0]), max_connections=64)
    generator = generate(server, load, 60.0)
    while server.stats()["counters"]["accepted"] == 0:
        assert not generator.wait_briefly(0.005)
    threading.Event().wait(chance.uniform(0.0, 0.2))
    signalled_s = time.monotonic()
    os.kill(server.pid, signal.SIGTERM)
    counted = server.last_words()
    exit_s = time.monotonic() - signalled_s
    generator.stop()
    report, samples = generator.report(), read_samples(generator.spec.samples)
    answered = int((samples["status"] > 0).sum())
    ended = int(np.isin(samples["status"], (200, 504)).sum())  # a deadline may fall between preprocess and predict
    return {
        "exit_code": server.process.returncode,
        "exit_s": exit_s,
        "accepted": counted["accepted"],
        "lost": counted["accepted"] - answered,
        "unfinished": max(0, witness.stat().st_size - warm_up_calls - ended),
        "unread": report["errors"].get("disconnected", 0),
    }


def drain_often(serve, generate, tmp_path, signals, pre_stop_s):
    """Many signals, at one setting after the other; sums, worst cases."""
    chance, runs = random.Random(signals), []
    first = 0 if pre_stop_s else 1  # in the small size each of the two tests takes every second setting
    for number in range(signals):
        changes = SETTINGS[(first + 2 * number) % len(SETTINGS)] | {"http.pre_stop_s": pre_stop_s}
        runs.append(drain_once(serve, generate, tmp_path / f"witness-{number}", chance, changes))
    figures = {name: sum(run[name] for run in runs) for name in ("accepted", "lost", "unfinished", "unread")}
    return {"signals": signals, **figures, "exit_max_s": max(run["exit_s"] for run in runs)}, runs


@pytest.mark.parametrize("pre_stop_s", [0.0, 0.1])
def test_a_signal_at_a_random_point_loses_no_accepted_request(serve, generate, told, tmp_path, pre_stop_s):
    check(drain_often(serve, generate, tmp_path, 5, pre_stop_s), told, pre_stop_s)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pre_stop_s", [0.0, 0.2])
def test_a_hundred_signals_at_random_points_lose_no_accepted_request(serve, generate, told, tmp_path, pre_stop_s):
    """With and without a pause before the stop: two hundred in all."""
    check(drain_often(serve, generate, tmp_path, 100, pre_stop_s), told, pre_stop_s)


def check(found, told, pre_stop_s):
    figures, runs = found
    told("R1", TARGET, pre_stop_s=pre_stop_s, **figures)
    assert (figures["lost"], figures["unfinished"]) == (0, 0)
    assert {run["exit_code"] for run in runs} == {0}
    assert figures["exit_max_s"] < 25


def test_the_count_notices_a_server_that_loses_requests(serve, generate, tmp_path):
    """The control of the tests above."""
    run = drain_once(serve, generate, tmp_path / "witness", random.Random(1), {}, PERFKIT_LOSES="1")
    assert run["lost"] > 0
    assert run["unfinished"] > 0


def test_readiness_goes_first_then_the_listener_and_what_is_in_flight_is_answered(serve, dial, tmp_path, eventually):
    server = serve("promise_models:Gated", changes={"http.pre_stop_s": 2.0}, env=gates(tmp_path, "load", "warm"))
    holder, probe, idle = dial(server.port), dial(server.port), dial(server.port)
    holder.post({"input": "wait"})
    eventually(lambda: server.stats()["gauge"]["in_flight"] == 1)
    os.kill(server.pid, signal.SIGTERM)
    eventually(lambda: server.stats()["is_ready"] is False)
    status, headers, _ = probe.ask("/health/ready")
    assert (status, headers["connection"], "retry-after" in headers) == (503, "close", True)
    newcomer = dial(server.port)  # the listener is still there, and requests are taken
    newcomer.post({"input": 1})
    eventually(lambda: refuses(server.port))
    assert idle.ask("/health/live")[0] == 200, "an open connection is heard to the end"
    (tmp_path / "work").touch()
    assert [wire.answer()[0] for wire in (holder, newcomer)] == [200, 200]
    assert server.process.wait(30) == 0


def test_under_its_supervisor_too_it_refuses_at_the_end_and_answers_what_is_in_flight(
    supervised, dial, tmp_path, eventually
):
    process, line = supervised("promise_models:Gated", gates(tmp_path, "load", "warm"))
    port = urlsplit(line["url"]).port
    holder = dial(port)
    holder.post({"input": "wait"})
    eventually((tmp_path / "work.awaited").exists)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: refuses(port))
    (tmp_path / "work").touch()
    assert holder.answer()[0] == 200
    assert process.wait(30) == 0


@pytest.fixture
def supervised():
    """Starts `perfkit serve` as a shell would; ends it after the test."""
    started = []
    home = Path(__file__).resolve()

    def start(model, env):
        command = [sys.executable, "-m", "perfkit", "serve", "--model", model, "--port", "0"]
        paths = os.pathsep.join([str(home.parents[2]), str(home.parent)])
        environment = os.environ | env | {"PYTHONPATH": paths}
        started.append(
            subprocess.Popen(command, cwd=home.parents[2], env=environment, stdout=subprocess.PIPE, text=True)
        )
        return started[-1], json.loads(started[-1].stdout.readline())

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("phase", ["load", "warm"])
def test_before_it_has_taken_a_request_a_signal_is_its_end_at_once(serve, tmp_path, eventually, phase, number):
    """However long the model still takes."""
    env = gates(tmp_path) if phase == "load" else gates(tmp_path, "load")
    server = serve("promise_models:Gated", env=env, ready=False)
    eventually((tmp_path / f"{phase}.awaited").exists)
    os.kill(server.pid, number)
    assert server.process.wait(30) == 0


def test_connections_that_nobody_had_taken_up_yet_are_answered_too(serve, dial, eventually):
    """The kernel completes connections for a listener that is too busy to accept them."""
    server = serve()
    process = psutil.Process(server.pid)
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED)
    wires = [dial(server.port) for _ in range(200)]
    for wire in wires:
        wire.post({"input": 1})
    process.terminate()
    process.resume()
    assert [wire.answer()[0] for wire in wires] == [200] * 200
    assert server.process.wait(30) == 0


def gates(folder, *open_ones):
    """The environment of a gated model, and the gates that are open from the start."""
    for gate in open_ones:
        (folder / gate).touch()
    return {"PERFKIT_GATES": str(folder)}


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False
