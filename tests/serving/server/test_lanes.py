"""Do requests go in the lane that they name, with its depth, its deadline and its workers? Real sockets."""

from __future__ import annotations

import pytest

from perfkit.errors import ConfigError


@pytest.fixture
def held(lab, dial, gate, eventually):
    """Configures lanes, and holds the shared worker with one request, so that what comes queues."""

    def make(changes, hold="default"):
        lab.configure(changes)
        wire = dial(lab)
        wire.post({"input": gate.payload}, f"Perfkit-Lane: {hold}")
        eventually(lambda: (lab.stats()["gauge"]["in_flight"], lab.stats()["admitted"]) == (1, 0))
        return wire

    yield make
    gate.open()


def ask(dial, lab, lane, payload=1, *headers):
    wire = dial(lab)
    wire.post({"input": payload}, f"Perfkit-Lane: {lane}", *headers)
    return wire


def queued(lab):
    return {name: counts["queued"] for name, counts in lab.stats()["lanes"].items() if counts["queued"]}


TWO = {"lanes.online.priority": 0, "lanes.offline.priority": 9}


@pytest.mark.parametrize(
    "crew",
    [
        {},
        {"concurrency.model": "serial"},
        {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 1},
        {"preprocess.placement": "threads", "queue.policy": "block", "lane_order.policy": "strict"},
    ],
)
def test_a_higher_lane_is_served_first(held, lab, dial, gate, eventually, crew):
    held(TWO | crew)
    low = ask(dial, lab, "offline", "low", "Perfkit-Timing: 1")
    eventually(lambda: queued(lab) == {"offline": 1})
    high = ask(dial, lab, "online", "high", "Perfkit-Timing: 1")
    eventually(lambda: queued(lab) == {"offline": 1, "online": 1})
    gate.open()
    waits = {name: wait_ms(wire.answer()) for name, wire in (("low", low), ("high", high))}
    assert waits["low"] > waits["high"]


def wait_ms(answer):
    stages = dict(entry.split(";dur=") for entry in answer.headers["server-timing"].split(", "))
    return float(stages["preprocess_wait"]) + float(stages["queue_wait"])


def test_a_request_that_names_no_lane_is_in_the_default_one(held, lab, dial, eventually):
    held(TWO)
    wire = dial(lab)
    wire.post({"input": 1})
    eventually(lambda: queued(lab) == {"default": 1})


def test_a_lane_that_nobody_has_set_is_refused_with_those_that_are_known(lab, dial):
    lab.configure(TWO)
    answer = ask(dial, lab, "onlin").answer()
    assert answer.code == (400, "unknown_lane")
    message = answer.json["error"]["message"]
    assert message == "Perfkit-Lane is 'onlin'; known: default, offline, online"


def test_without_lanes_the_header_means_nothing(lab, dial):
    assert ask(dial, lab, "anything").answer().status == 200
    assert lab.stats()["lanes"] is None


def test_a_full_lane_rejects_its_own_requests_only(held, lab, dial, eventually):
    held(TWO | {"lanes.offline.depth": 1})
    ask(dial, lab, "offline")
    eventually(lambda: queued(lab) == {"offline": 1})
    assert ask(dial, lab, "offline").answer().code == (503, "queue_full")
    ask(dial, lab, "online")
    eventually(lambda: queued(lab) == {"offline": 1, "online": 1})


def test_a_lane_may_have_its_own_deadline(held, lab, dial, eventually):
    held(TWO | {"lanes.online.deadline_s": 0.05})
    patient = ask(dial, lab, "offline")
    assert ask(dial, lab, "online").answer().code == (504, "deadline")
    eventually(lambda: queued(lab) == {"offline": 1})
    patient.close()


def test_a_lane_with_workers_of_its_own_does_not_wait_for_the_others(held, lab, dial, gate, eventually):
    stuck = held({"lanes.agent.workers": 2, "lanes.online.priority": 0})
    assert ask(dial, lab, "agent").answer().status == 200
    waits = ask(dial, lab, "online")
    eventually(lambda: queued(lab) == {"online": 1})
    names = sorted(name for name in lab.stats()["threads"].values() if name.startswith("model-"))
    assert names == ["model-0", "model-agent-0", "model-agent-1"]
    assert lab.stats()["crew"]["current"] == 3
    gate.open()
    assert [wire.answer().status for wire in (stuck, waits)] == [200, 200]


def test_lanes_come_and_go_under_a_running_service(held, lab, dial, gate, eventually):
    wires = [held(TWO), ask(dial, lab, "offline"), ask(dial, lab, "online")]
    eventually(lambda: queued(lab) == {"offline": 1, "online": 1})
    gate.open()
    lab.configure({"lanes.offline": None, "lanes.batch.share": 3.0})
    assert sorted(lab.settings.lanes) == ["batch", "online"]
    assert [wire.answer().status for wire in wires] == [200] * 3


def test_queue_depth_is_told_for_each_lane(held, lab, dial, eventually):
    held(TWO)
    ask(dial, lab, "offline")
    eventually(lambda: queued(lab) == {"offline": 1})
    wire = dial(lab)
    wire.get("/metrics")
    assert b'perfkit_lane_queue_depth{lane="offline"} 1.0' in wire.answer().body


def test_who_asks_for_a_batch_of_its_own_gets_one(held, lab, dial, gate, eventually):
    held({"batch.max_size": 8})
    mates = [ask(dial, lab, "default", number) for number in range(3)]
    alone = ask(dial, lab, "default", "alone", "Perfkit-Batch: off")
    eventually(lambda: lab.stats()["queued"] == 4)
    gate.open()
    assert alone.answer().json["output"]["batch"] == 1
    assert [wire.answer().json["output"]["batch"] for wire in mates] == [3, 3, 3]


def test_a_wish_about_the_batch_that_is_neither_on_nor_off_is_refused(lab, dial):
    assert ask(dial, lab, "default", 1, "Perfkit-Batch: maybe").answer().code == (400, "bad_batch")
    assert ask(dial, lab, "default", 1, "Perfkit-Batch: on").answer().status == 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes.online.prio": 1}, "unknown setting lanes.online.prio"),
        ({"lanes.online": 3}, "unknown setting lanes.online"),
        ({"lanes.on line.priority": 3}, "a lane is called 'on line'"),
        ({"lanes.x.share": 0.0}, "share is 0.0; it takes a number from 0.001 to 1000"),
        (
            {"lanes.x.share": 1.0, "concurrency.model": "thread_per_request"},
            "lanes are set with concurrency.model = thread",
        ),
    ],
)
def test_lanes_that_cannot_be_are_refused(lab, changes, message):
    with pytest.raises(ConfigError) as refusal:
        lab.configure(changes)
    assert str(refusal.value)[: len(message)] == message
    assert lab.settings.lanes == {}
