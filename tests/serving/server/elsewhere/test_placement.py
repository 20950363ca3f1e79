"""Do preprocess and postprocess run in processes of their own, and what becomes of a request when one of them dies?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from perfkit import fields
from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.service import launch
from perfkit.settings.server import ServerSettings

APART = {"placement": "processes", "processes": 1}


@pytest.fixture(scope="module")
def apart_server(models_on_path):
    with launch(model="wandering_models:Wanderer", preprocess=APART, postprocess=APART, workers=2) as service:
        yield service


@pytest.fixture
def apart(apart_server, eventually):
    """The server, with all its children in place."""
    eventually(lambda: all(child["pid"] for child in apart_server.stats()["processes"]))
    return apart_server


def pids(service):
    return {child["name"]: child["pid"] for child in service.stats()["processes"]}


def ask(wire, payload):
    wire.post({"input": payload})
    return wire.answer()


def test_each_stage_runs_where_it_was_placed(apart, dial):
    found, children = ask(dial(apart), [1, "two", None]).json["output"], pids(apart)
    assert found == {
        "payload": [1, "two", None],
        "preprocess": children["preprocess-0"],
        "predict": apart.pid,
        "postprocess": children["postprocess-0"],
    }


def test_a_request_whose_input_fails_is_told_so_and_its_child_lives_on(apart, dial):
    wire, before = dial(apart), pids(apart)
    deeds = [("preprocess", "raise"), ("preprocess", "refuse"), ("preprocess", "exit"), ("preprocess", "mumble")]
    deeds += [("postprocess", "raise"), ("postprocess", "return an object")]
    answers = [ask(wire, {"at": at, "do": deed}) for at, deed in deeds]
    assert [answer.code for answer in answers] == [
        (500, "model_error"),
        (422, "input_refused"),
        (500, "model_error"),
        (500, "model_error"),
        (500, "model_error"),
        (500, "model_error"),
    ]
    messages = [answer.json["error"]["message"] for answer in answers]
    assert messages[:5] == [
        "the model raised ValueError in preprocess: told to fail in preprocess",
        "told to refuse in preprocess",
        "the model raised SystemExit in preprocess: 9",
        "the model raised Mumble in preprocess: no text",
        "the model raised ValueError in postprocess: told to fail in postprocess",
    ]
    assert (ask(wire, 1).status, pids(apart)) == (200, before)


def test_a_killed_child_fails_its_request_at_once_and_is_replaced(apart, dial, tmp_path, eventually):
    hold, before, wire = tmp_path / "hold", pids(apart), dial(apart)
    deaths = apart.stats()["processes"][0]["deaths"]
    wire.post({"input": {"hold": str(hold)}})
    eventually(lambda: Path(f"{hold}.held").exists())
    os.kill(before["preprocess-0"], signal.SIGKILL)
    answer = wire.answer()  # without the hold being released
    assert answer.code == (500, "process_died")
    assert answer.json["error"]["message"] == (
        f"preprocess-0, process {before['preprocess-0']}, ended while it had the request"
    )
    successor = ask(wire, 1).json["output"]["preprocess"]
    assert successor != before["preprocess-0"]
    first = apart.stats()["processes"][0]
    assert (first["pid"], first["deaths"]) == (successor, deaths + 1)
    assert pids(apart)["postprocess-0"] == before["postprocess-0"]


def test_a_child_that_is_killed_before_it_has_read_a_request_is_replaced_without_that_request_noticing(
    apart, dial, eventually
):
    wire, before = dial(apart), pids(apart)
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    assert [ask(wire, number).status for number in range(3)] == [200] * 3
    eventually(lambda: all(pids(apart).values()))
    assert not set(pids(apart).values()) & set(before.values())


def test_children_that_are_killed_under_load_leave_no_request_without_an_answer_and_no_file_open(
    models_on_path, dial, eventually
):
    with launch(model="wandering_models:Wanderer", preprocess=APART | {"processes": 2}, postprocess=APART) as service:
        server, answers, files, stop = psutil.Process(service.pid), [], [], threading.Event()
        askers = [threading.Thread(target=_ask_until, args=(stop, dial(service), answers)) for _ in range(6)]
        for asker in askers:
            asker.start()
        for turn in range(3):
            victims = pids(service)
            for pid in victims.values():
                os.kill(pid, signal.SIGKILL)
            eventually(lambda seen=victims: _are_replaced(seen, pids(service)))
            reached = len(answers)
            eventually(lambda reached=reached: answers[reached:].count("200") > 10)
            assert sum(child["deaths"] for child in service.stats()["processes"]) == 3 * (turn + 1)
            files.append(server.num_fds())
        stop.set()
        for asker in askers:
            asker.join(30)
        assert not any(asker.is_alive() for asker in askers), "somebody still waits for an answer"
        assert set(answers) <= {"200", "process_died"}
        counters = service.stats()["counters"]
        assert (counters["accepted"], counters["ok"]) == (len(answers), answers.count("200"))
        assert max(files) - min(files) <= 1, f"{files}: but for a connection that is being closed they stay as many"


def _ask_until(stop, wire, answers):
    while not stop.is_set():
        answer = ask(wire, 1)
        answers.append("200" if answer.status == 200 else answer.json["error"]["code"])


def _are_replaced(victims, found):
    return all(found.values()) and not set(victims.values()) & set(found.values())


def test_the_ledger_holds_the_ways_the_childs_thread_and_its_cpu_time(apart, dial):
    wire = dial(apart)
    wire.post({"input": {"burn": 300_000}}, "Perfkit-Timing: 1", "Perfkit-Id: 4242")
    answer = wire.answer()
    names = [entry.partition(";")[0] for entry in answer.headers["server-timing"].split(", ")]
    assert [name for name in names if "process" in name and not name.endswith("wait")] == [
        "to_preprocess",
        "preprocess",
        "from_preprocess",
        "to_postprocess",
        "postprocess",
    ]
    row = next(row for row in apart.ledger("requests", 0).to_pylist() if row["request_id"] == 4242)
    assert row["preprocess_thread"] == pids(apart)["preprocess-0"]
    order = ["started", "reached", "ended", "returned"]
    for stage in ("preprocess", "postprocess"):
        instants = [row[f"{stage}_{name}_ns"] for name in order]
        assert instants == sorted(instants)
        assert row[f"{stage}_cpu_ns"] > 0
    assert row["postprocess_ended_ns"] <= row["serialised_ns"] <= row["postprocess_returned_ns"] <= row["replied_ns"]


def test_the_servers_cpu_time_is_that_of_its_children_too(apart, dial):
    before_s, own = apart.stats()["cpu_s"], psutil.Process(apart.pid)
    own_before_s = sum(own.cpu_times()[:2])
    child = pids(apart)["preprocess-0"]
    child_before_s = sum(psutil.Process(child).cpu_times()[:2])
    ask(dial(apart), {"burn": 10_000_000})
    grown_s = apart.stats()["cpu_s"] - before_s
    child_s = sum(psutil.Process(child).cpu_times()[:2]) - child_before_s
    own_s = sum(own.cpu_times()[:2]) - own_before_s
    assert child_s > 0
    assert grown_s >= child_s - 0.02, f"children count: {grown_s} of {child_s} + {own_s}"  # the kernel's tick


PLANS = [
    {"preprocess.placement": "processes", "postprocess.placement": "threads"},
    {"preprocess.placement": "threads", "postprocess.placement": "processes", "postprocess.processes": 2},
    {"preprocess.placement": "inline", "postprocess.placement": "inline"},
    {"preprocess.placement": "processes", "preprocess.processes": 2, "postprocess.placement": "processes"},
]


def test_changing_the_placement_under_load_loses_nothing_and_leaves_no_child_behind(apart, dial, eventually):
    first = {f"{stage}.{name}": value for stage in ("preprocess", "postprocess") for name, value in APART.items()}
    before = apart.stats()["counters"]
    statuses, stop = [], threading.Event()

    def ask_on():
        wire = dial(apart)
        while not stop.is_set():
            statuses.append(ask(wire, {"burn": 1000}).status)

    askers = [threading.Thread(target=ask_on) for _ in range(4)]
    for asker in askers:
        asker.start()
    counts = []
    for plan in [*PLANS, first]:
        apart.configure(plan)
        counts.append(len(apart.stats()["processes"]))
    stop.set()
    for asker in askers:
        asker.join()
    after = apart.stats()["counters"]
    assert (set(statuses), counts) == ({200}, [1, 2, 0, 4, 2])
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown == {"accepted": len(statuses), "ok": len(statuses)}
    eventually(lambda: {child.pid for child in psutil.Process(apart.pid).children()} == set(pids(apart).values()))


def test_a_child_loads_only_what_its_stages_need_when_the_model_can(models_on_path, dial):
    with launch(model="wandering_models:LoadsLess", preprocess=APART, postprocess=APART, seed=5) as service:
        assert ask(dial(service), 1).json["output"] == ["its stages, seed 5", "whole", "its stages, seed 5"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("FailsInAChild", "a process cannot start: TargetFailed: RuntimeError: no tokenizer"),
        ("DiesInAChild", "a process cannot start: TargetFailed: a child process ended with 3 before it was ready"),
    ],
)
def test_a_server_whose_children_cannot_load_does_not_start(models_on_path, model, reason):
    with pytest.raises(TargetFailed, match=reason), launch(model=f"wandering_models:{model}", preprocess=APART):
        pass


def test_a_setting_at_which_a_child_cannot_load_leaves_the_old_one_in_place_and_no_child(
    models_on_path, dial, eventually
):
    with launch(model="wandering_models:FailsInAChild") as service:
        with pytest.raises(TargetFailed, match="a process cannot start"):
            service.configure({"preprocess.placement": "processes", "preprocess.processes": 2})
        assert ask(dial(service), 1).json["output"]["preprocess"] == service.pid
        assert service.settings.preprocess.placement == "inline"
        eventually(lambda: psutil.Process(service.pid).children() == [])


def test_metrics_count_the_children_that_are_ready_and_those_that_died(apart, dial, eventually):
    def figures():
        wire = dial(apart)
        wire.get("/metrics")
        lines = wire.answer().body.decode().splitlines()
        return [
            float(line.split()[1])
            for line in lines
            if line.startswith(("perfkit_processes ", "perfkit_process_deaths_total "))
        ]

    deaths, ready = figures()
    os.kill(pids(apart)["preprocess-0"], signal.SIGKILL)
    eventually(lambda: figures() == [deaths + 1, ready])


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_server_leaves_no_child(ending, models_on_path, dial_to, eventually):
    words = ["serve", "--port", "0", "--model", "wandering_models:Wanderer", "--set", "preprocess.placement=processes"]
    words += ["--set", "preprocess.processes=2"]
    server = subprocess.Popen([sys.executable, "-m", "perfkit", *words], stdout=subprocess.PIPE, text=True)
    try:
        ready = json.loads(server.stdout.readline())
        children = psutil.Process(ready["pid"]).children()
        assert len(children) == 2
        os.kill(ready["pid"], ending)
        server.wait(30)
        eventually(lambda: not any(_is_alive(child) for child in children))
    finally:
        server.kill()
        server.stdout.close()
    if ending is signal.SIGTERM:
        assert server.returncode == 0


@pytest.mark.parametrize(
    ("model", "setting"), [("Wanderer", "preprocess.placement=processes"), ("Counting", "concurrency.model=processes")]
)
def test_sigterm_waits_for_a_request_that_a_child_has_in_hand(
    model, setting, models_on_path, dial_to, tmp_path, eventually
):
    words = ["serve", "--port", "0", "--model", f"wandering_models:{model}", "--set", setting]
    server = subprocess.Popen([sys.executable, "-m", "perfkit", *words], stdout=subprocess.PIPE, text=True)
    try:
        ready, hold = json.loads(server.stdout.readline()), tmp_path / "hold"
        wire = dial_to(ready["url"])
        wire.post({"input": {"hold": str(hold)}})
        eventually(Path(f"{hold}.held").exists)
        os.kill(ready["pid"], signal.SIGTERM)
        late = dial_to(ready["control_url"])
        eventually(lambda: not _stats(late)["is_ready"])
        hold.touch()
        assert wire.answer().status == 200
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.stdout.close()


def _stats(wire):
    wire.get("/stats")
    return wire.answer().json


def _is_alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": "carry"}, "placement is processes with topology = carry; carry runs every stage inline"),
        ({"model": "simulated:s002-textcls"}, "placement is processes with a simulated model"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        fields.replace(ServerSettings(model="noop"), {"preprocess.placement": "processes", **changes})
