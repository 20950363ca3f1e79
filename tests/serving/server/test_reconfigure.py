"""Can settings change while requests flow: none lost, none rejected, the model not loaded again?"""

from __future__ import annotations

import random
import threading

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.service import launch

PLANS = [
    {"workers": 3},
    {"batch.max_size": 4, "batch.max_delay_s": 0.001},
    {"preprocess.placement": "threads", "postprocess.placement": "threads", "preprocess.threads": 2},
    {"preprocess.placement": "inline", "postprocess.placement": "inline", "batch.max_size": 1, "topology": "carry"},
    {"topology": "staged", "workers": 1, "concurrency.model": "serial"},
    {"concurrency.model": "thread_per_request"},
    {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 6, "elastic.keep_alive_s": 0.0},
    {"elastic.core": 0, "queue.depth": 4, "batch.max_size": 2},
    {"concurrency.model": "asyncio", "workers": 2, "queue.depth": 64, "batch.max_delay_s": 0.001},
    {"replicas": 2},
    {"concurrency.model": "thread_per_request", "batch.max_size": 1},
    {"concurrency.model": "pool", "replicas": 1},
]


def test_settings_change_under_load_without_a_lost_or_rejected_request(lab, dial):
    change_under_load(lab, dial, PLANS * 2)


@pytest.mark.slow
def test_any_model_follows_any_other_under_load_without_a_lost_request(lab, dial):
    models = ["pool", "serial", "thread_per_request", "elastic", "asyncio"]
    chance = random.Random(20)
    sizes = {"elastic.core": 1, "elastic.max": 5, "elastic.keep_alive_s": 0.0, "batch.max_delay_s": 0.0005}
    plans = [{"workers": 1, "replicas": 1, "batch.max_size": 1, **sizes}]
    for _ in range(150):
        model = chance.choice(models)
        takes_many = model not in ("serial", "thread_per_request")
        plans.append(
            {
                "concurrency.model": model,
                "workers": 1 if model == "serial" else chance.randint(1, 4),
                "replicas": 1 if model == "serial" else chance.randint(1, 3),
                "batch.max_size": chance.randint(1, 4) if takes_many else 1,
                "elastic.core": chance.randint(0, 3),
                "queue.depth": chance.randint(8, 40),
            }
        )
    change_under_load(lab, dial, plans)


def change_under_load(lab, dial, plans):
    """Eight clients ask on while the settings change; every one of their requests is answered well."""
    before = lab.stats()["counters"]
    statuses, loads, stop = [], set(), threading.Event()

    def ask_on():
        wire = dial(lab)
        while not stop.is_set():
            wire.post({"input": {"sleep_s": 0.001}})
            answer = wire.answer()
            statuses.append(answer.status)
            loads.add(answer.json["output"]["loads"])

    askers = [threading.Thread(target=ask_on) for _ in range(8)]
    for asker in askers:
        asker.start()
    for plan in plans:
        lab.configure(plan)
        assert {name: value for name, value in flat(lab.control.get("/settings")).items() if name in plan} == plan
    stop.set()
    for asker in askers:
        asker.join()
    after = lab.stats()["counters"]
    assert (set(statuses), loads) == ({200}, {1})
    grown = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert grown == {"accepted": len(statuses), "ok": len(statuses)}


def flat(nested, prefix=""):
    found = {}
    for name, value in nested.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def test_no_thread_of_an_old_setting_stays(lab, eventually):
    lab.configure({"workers": 5, "preprocess.placement": "threads", "preprocess.threads": 3})
    lab.configure({"workers": 2, "preprocess.placement": "inline"})

    def ours():
        names = lab.stats()["threads"].values()
        return sorted(name for name in names if name.startswith(("model-", "preprocess-", "postprocess-")))

    eventually(lambda: ours() == ["model-0", "model-1"])


def test_stats_tell_how_many_threads_the_crew_has_and_had(lab, dial, gate, eventually):
    elastic = {"elastic.core": 1, "elastic.max": 3, "elastic.keep_alive_s": 0.0, "queue.depth": 1}
    lab.configure({"concurrency.model": "elastic", **elastic})
    wires = [dial(lab) for _ in range(4)]
    for wire in wires:
        wire.post({"input": gate.payload})
    expected = {"model": "elastic", "current": 3, "peak": 3, "started": 3, "resting": 0, "replica_loads": []}
    eventually(lambda: lab.stats()["crew"] == expected)

    def ours():
        return sorted(name for name in lab.stats()["threads"].values() if name.startswith("model-"))

    assert ours() == ["model-0", "model-1", "model-2"]
    gate.open()
    assert [wire.answer().status for wire in wires] == [200] * 4
    eventually(lambda: (lab.stats()["crew"]["current"], len(ours())) == (1, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "mlp"}, "model cannot change while the server runs; start it again with the new value"),
        (
            {"seed": 3, "ledger.capacity": 2048, "workers": 2},
            "seed, ledger.capacity cannot change while the server runs; start it again with the new value",
        ),
        ({"workers": 0}, "workers is 0; it takes a whole number from 1 to 1024"),
        ({"workers": "two"}, "workers is 'two'; it takes a whole number from 1 to 1024"),
        ({"wrokers": 2}, "unknown setting wrokers; GET /settings lists all"),
        ({"topology": "carry", "batch.max_size": 4}, "batch.max_size is 4 with topology = carry"),
        ({"batch": {"max_size": {"deep": 1}}}, "unknown setting batch.max_size.deep; GET /settings lists all"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_and_changes_nothing(lab, changes, message):
    before = lab.settings
    with pytest.raises(ConfigError) as refusal:
        lab.configure(changes)
    assert str(refusal.value)[: len(message)] == message
    assert lab.settings == before


def test_a_body_that_is_no_settings_is_refused(lab, dial):
    codes = []
    for body in (b"[1]", b"{", b'{"a":' * 1000 + b"1" + b"}" * 1000):
        wire = dial(lab.control)
        wire.send(b"PATCH /settings HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        codes.append(wire.answer().code)
    assert codes == [(400, "bad_shape"), (400, "bad_json"), (400, "bad_shape")]


def test_two_changes_at_once_are_both_made(lab):
    threads = [
        threading.Thread(target=lab.configure, args=(change,))
        for change in ({"workers": 4}, {"batch.max_size": 3}, {"queue.depth": 77})
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settings = lab.settings
    assert (settings.workers, settings.batch.max_size, settings.queue.depth) == (4, 3, 77)


def test_the_control_port_stays_usable_whatever_limits_the_service_port_has(lab, dial):
    lab.configure({"http.max_body_bytes": 1})
    wire = dial(lab)
    wire.post({"input": 1})
    assert wire.answer().code == (413, "body_too_large")
    lab.configure({"http.max_body_bytes": 1000})
    assert lab.settings.http.max_body_bytes == 1000


def test_a_setting_at_which_no_worker_can_start_leaves_the_old_one_in_place(models_on_path, dial):
    from perfkit import launch
    from perfkit.errors import TargetFailed

    with launch(model="lab_models:FailsOnPairs") as service:
        with pytest.raises(TargetFailed, match="a model worker cannot start: ValueError: no pairs"):
            service.configure({"batch.max_size": 2})
        wire = dial(service)
        wire.post({"input": "x"})
        assert (wire.answer().json["output"], service.settings.batch.max_size) == ("X", 1)


def test_the_switch_interval_follows_its_setting_and_goes_back(lab):
    seen = []
    for wanted_s in (None, 0.0005, None):
        lab.configure({"switch_interval_s": wanted_s})
        seen.append(round(lab.stats()["switch_interval_s"], 6))
    assert seen == [0.005, 0.0005, 0.005]


def test_a_busy_python_thread_runs_beside_the_convoy_model():
    with launch(model="sample_models.convoy:Convoy") as service:
        assert list(service.stats()["threads"].values()).count("busy-python") == 1
