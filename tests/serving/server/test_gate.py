"""Do the guards turn requests away together, and does every one that was let in give back what it took?"""

from __future__ import annotations

import pytest

from perfkit import fields
from perfkit.clock import REAL_CLOCK
from perfkit.records import EndState
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server.gate import Pass, build_gate
from perfkit.settings.server import ServerSettings

SECOND = 1_000_000_000
BREAKER = {"breaker.enabled": True, "breaker.window": 4, "breaker.least": 2, "breaker.open_s": 1.0}
ALL = {**BREAKER, "limits.policy": "fixed", "limits.in_hand": 2, "limits.bucket_rps": 1.0, "limits.burst": 3}


def gate_of(clock, **changes):
    return build_gate(fields.replace(ServerSettings(model="noop"), changes), clock)


def reasons(gate, count):
    return [granted.reason if isinstance(granted, Rejected) else "" for granted in (gate.ask(1) for _ in range(count))]


def test_with_every_policy_off_there_is_no_gate(clock):
    assert gate_of(clock) is None


@pytest.mark.parametrize("changes", [BREAKER, {"limits.policy": "adaptive"}, {"limits.bucket_rps": 5.0}])
def test_a_policy_that_is_on_builds_its_guard_and_no_other(clock, changes):
    stats = gate_of(clock, **changes).stats()
    assert stats == {
        "breakers": {"default": "closed"} if changes is BREAKER else {},
        "concurrency_limit": 64 if "limits.policy" in changes else None,
        "in_hand": 0 if "limits.policy" in changes else None,
    }


def test_each_guard_gives_its_own_reason(clock):
    gate = gate_of(clock, **ALL)
    first, second = gate.ask(1), gate.ask(1)
    assert reasons(gate, 1) == ["concurrency_limit"]
    gate.tell(first, EndState.OK)
    assert reasons(gate, 1) == [""]
    gate.tell(second, EndState.OK)
    assert reasons(gate, 1) == ["rate_limited"]


def test_a_request_that_one_guard_turns_away_costs_the_others_nothing(clock):
    gate = gate_of(clock, **ALL)
    granted = gate.ask(2)
    assert reasons(gate, 10) == ["concurrency_limit"] * 10, "none of them took a token"
    gate.tell(granted, EndState.OK)
    assert reasons(gate, 1) == [""]
    assert reasons(gate, 10) == ["rate_limited"] * 10, "none of them stayed in hand"
    assert gate.stats()["in_hand"] == 1


def test_a_request_that_the_queue_turned_away_leaves_the_gate_as_it_was(clock):
    gate = gate_of(clock, **ALL)
    for _ in range(20):
        gate.take_back(gate.ask(2))
    assert gate.stats() == {"breakers": {"default": "closed"}, "concurrency_limit": 2, "in_hand": 0}
    assert reasons(gate, 1) == [""]


def test_only_failures_of_the_service_open_the_breaker(clock):
    gate = gate_of(clock, **BREAKER)
    for state in (EndState.EXPIRED, EndState.CANCELLED, EndState.REFUSED) * 5:
        gate.tell(gate.ask(1), state)
    assert gate.closed_to_all() is None
    for _ in range(2):
        gate.tell(gate.ask(1), EndState.FAILED)
    assert gate.closed_to_all() == Rejected(reason="breaker_open", retry_after_s=1.0)
    clock.advance(SECOND)
    assert gate.closed_to_all() is None, "half-open: somebody must be sent here to find out"


def test_the_real_clock_drives_it_too():
    gate = gate_of(REAL_CLOCK, **{"limits.bucket_rps": 1000.0})
    granted = gate.ask(1)
    assert isinstance(granted, Pass)
    gate.tell(granted, EndState.OK)


LANES = {"lanes.online.priority": 0, "lanes.agent.priority": 1}


def fail_lane(gate, lane, times):
    for _ in range(times):
        granted = gate.ask(1, lane)
        if isinstance(granted, Pass):
            gate.tell(granted, EndState.FAILED)


def test_a_lane_that_makes_the_model_fail_is_shut_out_alone(clock):
    gate = gate_of(clock, **BREAKER, **LANES)
    assert gate.stats()["breakers"] == {"default": "closed", "online": "closed", "agent": "closed"}
    fail_lane(gate, 2, 2)
    assert gate.stats()["breakers"] == {"default": "closed", "online": "closed", "agent": "open"}
    assert [isinstance(gate.ask(1, lane), Pass) for lane in (0, 1, 2)] == [True, True, False]
    assert gate.closed_to_all() is None


def test_the_service_is_closed_to_all_only_when_every_lane_is(clock):
    gate = gate_of(clock, **BREAKER, **LANES)
    for lane in (0, 1):
        fail_lane(gate, lane, 2)
    clock.advance(SECOND // 2)
    assert gate.closed_to_all() is None
    fail_lane(gate, 2, 2)
    assert gate.closed_to_all() == Rejected(reason="breaker_open", retry_after_s=0.5), "until the first tries again"


@pytest.mark.parametrize(
    ("changes", "guarded"),
    [
        ({"breaker.enabled": True, "lanes.online.breaker": False}, ["default", "agent"]),
        ({"lanes.agent.breaker": True}, ["agent"]),
        ({"lanes.agent.breaker": False}, None),
    ],
)
def test_a_lane_may_have_a_breaker_or_none_whatever_the_others_have(clock, changes, guarded):
    gate = gate_of(clock, **LANES, **changes)
    assert (list(gate.stats()["breakers"]) if gate else None) == guarded
