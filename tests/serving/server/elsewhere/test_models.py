"""Does each worker have a model of its own in another process, and what becomes of a batch when that process dies?"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.service import launch
from perfkit.settings.server import ServerSettings

PROCESSES = {"model": "processes"}


@pytest.fixture(scope="module")
def apart_server(models_on_path):
    with launch(model="wandering_models:Counting", concurrency=PROCESSES, workers=2) as service:
        yield service


@pytest.fixture
def apart(apart_server, eventually):
    """The server, at its first settings and with all its children in place."""
    apart_server.configure({"workers": 2, "batch.max_size": 1, "batch.max_delay_s": 0.0})
    eventually(lambda: all(pids(apart_server).values()))
    return apart_server


def pids(service):
    return {child["name"]: child["pid"] for child in service.stats()["processes"]}


def ask(wire, payload):
    wire.post({"input": payload})
    return wire.answer()


def hold_all(service, dial, tmp_path, eventually):
    """One request in each worker's model at once: who waits there, and what to touch for them to go on."""
    held = []
    for number in range(service.settings.workers):
        gate, wire = tmp_path / f"gate{number}", dial(service)
        wire.post({"input": {"hold": str(gate)}})
        eventually(Path(f"{gate}.held").exists)
        held.append((wire, gate))
    return held


def test_two_workers_are_two_processes_with_weights_of_their_own(apart, dial, tmp_path, eventually):
    held = hold_all(apart, dial, tmp_path, eventually)
    for _, gate in held:
        gate.touch()
    outputs = [wire.answer().json["output"] for wire, _ in held]
    assert {output["pid"] for output in outputs} == set(pids(apart).values())
    assert [output["loads"] for output in outputs] == [1, 1]


def test_one_that_is_killed_fails_its_batch_at_once_and_is_replaced_while_the_other_serves_on(
    apart, dial, tmp_path, eventually
):
    before = pids(apart)
    (victim, _), (other, gate) = hold_all(apart, dial, tmp_path, eventually)
    # Which of the two has the first request is not known; the other's reply tells.
    gate.touch()
    survivor = other.answer().json["output"]["pid"]
    (doomed,) = set(before.values()) - {survivor}
    os.kill(doomed, signal.SIGKILL)
    assert victim.answer().code == (500, "process_died")
    assert ask(dial(apart), 1).json["output"]["pid"] == survivor
    eventually(lambda: all(pids(apart).values()))
    after = pids(apart)
    assert survivor in after.values()
    assert doomed not in after.values()
    assert sum(child["deaths"] for child in apart.stats()["processes"]) == 1


def test_a_request_that_raises_fails_alone_and_one_that_exits_too(apart, dial, tmp_path, eventually):
    apart.configure({"workers": 1, "batch.max_size": 4, "batch.max_delay_s": 5.0})
    before = pids(apart)
    wires = [dial(apart) for _ in range(4)]
    for wire, payload in zip(wires, [1, "raise", 2, "exit"], strict=True):
        wire.post({"input": payload})
    answers = [wire.answer() for wire in wires]
    assert [answer.status for answer in answers] == [200, 500, 200, 500]
    assert [answers[place].json["error"]["message"] for place in (1, 3)] == [
        "the model raised ValueError in predict: told to fail",
        "the model raised SystemExit in predict: 4",
    ]
    assert pids(apart) == before


def test_a_request_that_kills_its_process_takes_its_batch_along_once_and_not_the_next_process_too(apart, dial):
    apart.configure({"workers": 1, "batch.max_size": 2, "batch.max_delay_s": 5.0})
    wires = [dial(apart) for _ in range(2)]
    for wire, payload in zip(wires, [1, 13], strict=True):
        wire.post({"input": payload})
    assert [wire.answer().code for wire in wires] == [(500, "process_died")] * 2
    for wire in wires:
        wire.post({"input": 1})
    assert [wire.answer().json["output"]["batch"] for wire in wires] == [2, 2]
    assert apart.stats()["processes"][0]["deaths"] == 1


def test_the_ledger_holds_the_ways_of_the_batch(apart, dial):
    wire = dial(apart)
    wire.post({"input": 1}, "Perfkit-Id: 77")
    wire.answer()
    (row,) = [row for row in apart.ledger("requests", 0).to_pylist() if row["request_id"] == 77]
    (batch,) = [each for each in apart.ledger("batches", 0).to_pylist() if each["batch_id"] == row["batch_id"]]
    names = ["batch_sealed", "model_reached", "collated", "compute_started", "compute_ended", "woken", "model_returned"]
    instants = [batch[f"{name}_ns"] for name in names]
    assert instants == sorted(instants)
    assert instants[0] > 0
    assert batch["model_thread"] in pids(apart).values()
    assert instants[-1] <= row["postprocess_started_ns"]


CREWS = ["pool", "serial", "thread_per_request", "elastic", "asyncio", "processes"]
TORCH = pytest.param("TellsThreads", "processes", marks=pytest.mark.slow)  # its import takes seconds in each process


@pytest.mark.parametrize(("model", "crew"), [*(("TellsThreadsOfAStandIn", crew) for crew in CREWS), TORCH])
def test_the_effective_threads_are_read_back_where_the_model_runs(model, crew, models_on_path, dial):
    workers, threads = 1 if crew in ("serial", "thread_per_request", "elastic") else 2, 3
    settings = {"concurrency": {"model": crew}, "workers": workers, "intra_op_threads": threads}
    with launch(model=f"wandering_models:{model}", **settings) as service:
        stats = service.stats()
        assert stats["device"]["effective_threads"] == [threads] * workers
        children = [child["effective_threads"] for child in stats["processes"]]
        assert children == ([threads] * workers if crew == "processes" else [])
        assert ask(dial(service), 1).json["output"] == threads


def test_changing_between_threads_and_processes_under_load_loses_nothing(apart, dial, eventually):
    before = apart.stats()["counters"]
    statuses, stop = [], threading.Event()

    def ask_on():
        wire = dial(apart)
        while not stop.is_set():
            statuses.append(ask(wire, 1).status)

    askers = [threading.Thread(target=ask_on) for _ in range(4)]
    for asker in askers:
        asker.start()
    for model in ("pool", "processes", "asyncio", "processes"):
        apart.configure({"concurrency.model": model})
    stop.set()
    for asker in askers:
        asker.join()
    after = apart.stats()["counters"]
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert (set(statuses), grown) == ({200}, {"accepted": len(statuses), "ok": len(statuses)})
    eventually(lambda: {child.pid for child in psutil.Process(apart.pid).children()} == set(pids(apart).values()))


def test_a_simulated_model_has_no_processes():
    with pytest.raises(ConfigError, match=r"concurrency\.model is processes with a simulated model"):
        fields.replace(ServerSettings(model="simulated:s002-textcls"), {"concurrency.model": "processes"})


def test_a_deadline_that_passes_on_the_way_keeps_the_request_from_the_model_there_and_its_mate_is_served(
    models_on_path, dial, eventually
):
    batching = {"max_size": 2, "max_delay_s": 30.0}
    with launch(model="wandering_models:CollatesSlowly", concurrency=PROCESSES, batch=batching) as service:
        late, mate = dial(service), dial(service)
        late.post({"input": {"collate_s": 1.0}}, "Perfkit-Deadline: 0.6")
        eventually(lambda: service.stats()["queued"] == 1)
        mate.post({"input": "mate"})
        assert mate.answer().json["output"]["batch"] == 1, "the model saw only one"
        assert late.answer().code == (504, "deadline")
        assert service.stats()["ledger"]["open_batches"] == 0
