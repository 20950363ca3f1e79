"""What becomes of a request that finds the queue full, at each policy? Real sockets, a real process."""

from __future__ import annotations

import pytest

from perfkit.errors import ConfigError

FULL = {"queue.depth": 1}


@pytest.fixture
def crowded(lab, dial, gate, eventually):
    """A server with one request at the model, held there, and one in the queue, which takes no more."""

    def make(policy, **changes):
        lab.configure(FULL | {"queue.policy": policy} | changes)
        for admitted in (0, 1):
            wire = dial(lab)
            wire.post({"input": gate.payload})
            wires.append(wire)
            eventually(lambda admitted=admitted: is_settled(lab, len(wires), admitted))
        return wires

    wires = []
    yield make
    gate.open()


def is_settled(lab, in_flight, admitted):
    stats = lab.stats()
    return (stats["gauge"]["in_flight"], stats["admitted"]) == (in_flight, admitted)


def ask(dial, lab, document=None):
    wire = dial(lab)
    wire.post(document or {"input": "new"})
    return wire


@pytest.mark.parametrize(
    ("policy", "reason"), [("reject", "queue_full"), ("discard", "discarded"), ("shed", "queue_full")]
)
def test_what_does_not_fit_is_told_why_and_when_to_come_back(crowded, lab, dial, gate, policy, reason):
    wires = crowded(policy)
    answer = ask(dial, lab).answer()
    assert answer.code == (503, reason)
    assert int(answer.headers["retry-after"]) >= 1
    gate.open()
    assert [wire.answer().status for wire in wires] == [200, 200]


def test_with_drop_oldest_the_new_one_is_served_and_the_oldest_is_told(crowded, lab, dial, gate):
    at_model, oldest = crowded("drop_oldest")
    new = ask(dial, lab)
    answer = oldest.answer()
    assert answer.code == (503, "dropped")
    assert int(answer.headers["retry-after"]) >= 1
    gate.open()
    assert [wire.answer().status for wire in (at_model, new)] == [200, 200]


def test_with_block_a_request_waits_outside_until_there_is_room(crowded, lab, dial, gate, eventually):
    wires = crowded("block", **{"queue.block_s": 60.0})
    wires += [ask(dial, lab, {"input": number}) for number in (1, 2)]
    eventually(lambda: is_settled(lab, 4, 1))
    gate.open()
    assert [wire.answer().status for wire in wires] == [200] * 4


@pytest.mark.parametrize("placement", ["inline", "threads"])
def test_a_request_from_the_door_goes_through_every_stage(crowded, lab, dial, gate, eventually, placement):
    wires = crowded("block", **{"queue.block_s": 60.0, "preprocess.placement": placement})
    wires.append(dial(lab))
    wires[-1].post({"input": "late"}, "Perfkit-Timing: 1")
    eventually(lambda: is_settled(lab, 3, 1))
    gate.open()
    answers = [wire.answer() for wire in wires]
    assert answers[2].json["output"]["echo"] == "late"
    assert answers[2].headers["server-timing"].count("preprocess;dur=") == 1


def test_with_block_a_request_that_has_waited_outside_for_too_long_is_rejected(crowded, lab, dial):
    crowded("block", **{"queue.block_s": 0.05})
    assert ask(dial, lab).answer().code == (503, "blocked")
    assert ask(dial, lab).answer().code == (503, "blocked")


def test_nobody_waits_outside_beyond_a_deadline(crowded, lab, dial):
    crowded("block", **{"queue.block_s": 60.0, "queue.deadline_s": 0.05})
    assert ask(dial, lab).answer().code == (504, "deadline")


def test_a_client_that_leaves_while_it_waits_outside_is_forgotten(crowded, lab, dial, gate, eventually):
    crowded("block", **{"queue.block_s": 60.0})
    before = lab.stats()["counters"]["cancelled"]
    wire = ask(dial, lab)
    eventually(lambda: is_settled(lab, 3, 1))
    wire.close()
    eventually(lambda: lab.stats()["counters"]["cancelled"] == before + 1)
    assert is_settled(lab, 2, 1)


def test_a_change_of_settings_loses_nobody_who_waits_outside(crowded, lab, dial, gate, eventually):
    wires = crowded("block", **{"queue.block_s": 60.0})
    wires.append(ask(dial, lab))
    eventually(lambda: is_settled(lab, 3, 1))
    gate.open()
    lab.configure({"queue.policy": "reject"})
    assert [wire.answer().status for wire in wires] == [200] * 3


def test_with_caller_runs_the_event_loop_answers_the_request_itself(crowded, lab, dial, gate):
    wires = crowded("caller_runs", **{"preprocess.placement": "threads", "postprocess.placement": "threads"})
    before = lab.stats()["ledger"]["batches"]
    assert ask(dial, lab, {"input": "x"}).answer().json["output"]["echo"] == "x"
    assert lab.stats()["ledger"]["batches"] == before + 1, "while the only worker still holds its own"
    gate.open()
    assert [wire.answer().status for wire in wires] == [200, 200]


def test_a_failure_on_the_event_loop_is_answered_as_any_other(crowded, lab, dial):
    crowded("caller_runs")
    assert ask(dial, lab, {"input": {"at": "predict", "do": "exit"}}).answer().code == (500, "model_error")
    assert ask(dial, lab).answer().status == 200


def test_without_a_depth_nothing_is_rejected(crowded, lab, dial, gate, eventually):
    wires = crowded("reject", **{"queue.depth": None})
    assert lab.settings.queue.depth is None
    wires += [ask(dial, lab, {"inputs": [0] * 1024}) for _ in range(2)]
    eventually(lambda: is_settled(lab, 2 + 2 * 1024, 1 + 2 * 1024))
    gate.open()
    assert [wire.answer().status for wire in wires] == [200] * 4


def test_the_settings_name_the_policies(lab):
    with pytest.raises(ConfigError, match="policy is 'abort'; it takes one of reject, block, caller_runs"):
        lab.configure({"queue.policy": "abort"})
