"""What does a client see of rate limit, concurrency limit, breaker and deadline? Real sockets, a real process."""

from __future__ import annotations

import pytest

FAIL = {"input": {"at": "predict", "do": "raise"}}


def ask(wire, document, *headers):
    wire.post(document, *headers)
    return wire.answer()


def ready(wire):
    wire.get("/health/ready")
    answer = wire.answer()
    return answer.status if answer.status == 200 else answer.code


def test_what_comes_faster_than_the_rate_gets_429_and_when_to_come_back(lab, dial):
    lab.configure({"limits.bucket_rps": 0.1, "limits.burst": 2})
    wire = dial(lab)
    assert [ask(wire, {"input": 1}).status for _ in range(2)] == [200, 200]
    answer = ask(wire, {"input": 1})
    assert answer.code == (429, "rate_limited")
    assert 10 <= int(answer.headers["retry-after"]) <= 15
    lab.configure({"limits.bucket_rps": None})
    assert ask(wire, {"input": 1}).status == 200


@pytest.mark.parametrize("policy", ["fixed", "adaptive"])
def test_more_in_hand_than_the_limit_gets_503_until_an_answer_has_left(lab, dial, gate, eventually, policy):
    lab.configure({"limits.policy": policy, "limits.in_hand": 2, "limits.target_s": 60.0, "workers": 4})
    wires = [dial(lab) for _ in range(2)]
    for wire in wires:
        wire.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gate"]["in_hand"] == 2)
    extra = ask(dial(lab), {"input": 1})
    assert (extra.code, extra.headers["retry-after"] in "12") == ((503, "concurrency_limit"), True)
    gate.open()
    assert [wire.answer().status for wire in wires] == [200, 200]
    assert ask(dial(lab), {"input": 1}).status == 200
    assert lab.stats()["gate"] == {"breakers": {}, "concurrency_limit": 2, "in_hand": 0}


def test_a_failing_model_is_given_a_rest_and_a_probe_ends_it(lab, dial, eventually):
    opens = {"breaker.enabled": True, "breaker.least": 3, "breaker.window": 4, "breaker.open_s": 1.0}
    lab.configure({**opens, "breaker.probes": 1})
    wire, health = dial(lab), dial(lab)
    assert [ask(wire, FAIL).status for _ in range(3)] == [500, 500, 500]
    refused = ask(wire, {"input": 1})
    assert (refused.code, refused.headers["retry-after"] in "12") == ((503, "breaker_open"), True)
    assert ready(health) == (503, "breaker_open")
    health.get("/health/live")
    assert health.answer().status == 200, "resting is not dying"
    eventually(lambda: ready(health) == 200)
    assert lab.stats()["gate"]["breakers"]["default"] == "half_open"
    assert ask(wire, {"input": 1}).status == 200
    assert lab.stats()["gate"]["breakers"]["default"] == "closed"


def test_a_client_that_leaves_or_sends_what_the_model_refuses_opens_nothing(lab, dial, gate, eventually):
    lab.configure({"breaker.enabled": True, "breaker.least": 1, "breaker.window": 1})
    left = dial(lab)
    left.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 1)
    left.close()
    gate.open()
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 0)
    assert ask(dial(lab), {"input": {"at": "preprocess", "do": "refuse"}}).status == 422
    assert lab.stats()["gate"]["breakers"]["default"] == "closed"


def test_a_queue_that_is_full_gives_the_gate_its_places_back(lab, dial, gate, eventually):
    lab.configure({"queue.depth": 1, "limits.policy": "fixed", "limits.in_hand": 3})
    wires = [dial(lab), dial(lab)]
    for number, wire in enumerate(wires):
        wire.post({"input": gate.payload})
        eventually(
            lambda number=number: (lab.stats()["gate"]["in_hand"], lab.stats()["queued"]) == (number + 1, number)
        )
    for _ in range(5):
        assert ask(dial(lab), {"input": 1}).code == (503, "queue_full")
    assert lab.stats()["gate"]["in_hand"] == 2
    gate.open()
    assert [wire.answer().status for wire in wires] == [200, 200]


@pytest.mark.parametrize("text", ["soon", "-1", "1e3", "0x1", "inf", "nan", "1.", ".5", "", "1" * 10, "²"])
def test_a_deadline_that_is_no_number_of_seconds_is_refused(lab, dial, text):
    answer = ask(dial(lab), {"input": 1}, f"Perfkit-Deadline: {text}")
    assert answer.code == (400, "bad_deadline")
    assert "it takes the seconds that remain, as a decimal such as 0.25" in answer.json["error"]["message"]


def test_a_deadline_that_has_passed_on_arrival_is_never_admitted(lab, dial):
    batches = lab.stats()["ledger"]["batches"]
    answer = ask(dial(lab), {"inputs": [1, 2]}, "Perfkit-Deadline: 0")
    assert (answer.code, answer.headers["retry-after"] in "12") == ((504, "deadline"), True)
    assert ask(dial(lab), {"input": 1}, "Perfkit-Deadline: 30.5").status == 200
    assert lab.stats()["ledger"]["batches"] == batches + 1


@pytest.mark.parametrize(("header", "setting"), [("0.05", None), ("0.05", 60.0), ("60", 0.05)])
def test_of_header_and_setting_the_sooner_deadline_counts(lab, dial, gate, eventually, header, setting):
    lab.configure({"queue.deadline_s": setting, "batch.max_size": 2, "batch.max_delay_s": 30.0})
    wire = dial(lab)
    wire.post({"input": 1}, f"Perfkit-Deadline: {header}")
    assert wire.answer().code == (504, "deadline"), "it would have waited in the queue for a mate"


def test_a_lane_whose_requests_make_the_model_fail_is_given_a_rest_and_the_others_are_served(lab, dial):
    opens = {"breaker.enabled": True, "breaker.least": 3, "breaker.window": 4, "breaker.open_s": 60.0}
    lab.configure({**opens, "lanes.online.priority": 0, "lanes.agent.priority": 1})
    wire = dial(lab)
    assert [ask(wire, FAIL, "Perfkit-Lane: agent").status for _ in range(3)] == [500, 500, 500]
    assert ask(wire, {"input": 1}, "Perfkit-Lane: agent").code == (503, "breaker_open")
    assert [ask(wire, {"input": 1}, f"Perfkit-Lane: {lane}").status for lane in ("online", "default")] == [200, 200]
    assert ready(dial(lab)) == 200
