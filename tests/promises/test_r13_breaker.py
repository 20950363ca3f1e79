"""R13: is the breaker exact when 64 threads ask and conclude at once?

The locked gate is driven by real threads that the interpreter switches as often as it can; time is virtual. The state
machine behind it lives a random life, held against a naive one, in `tests/serving/scheduling/test_breaker.py`.
Target: in 10^5 transitions never more probes than there are, and no permit lost.
"""

from __future__ import annotations

import random
import sys
import threading

import pytest

from perfkit import fields
from perfkit.clock import ManualClock
from perfkit.records import EndState
from perfkit.serving.scheduling.breaker import Breaker, BreakerRule
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server.gate import Gate, Pass, build_gate
from perfkit.settings.server import ServerSettings

TARGET = "0 illegal, 0 lost permits in 10^5 transitions"
SECOND = 1_000_000_000
CHANGES = {
    "breaker.enabled": True,
    "breaker.window": 4,
    "breaker.least": 2,
    "breaker.open_s": 1.0,
    "limits.policy": "fixed",
    "limits.in_hand": 64,
}
THREADS, PROBES = 64, 3


def race(gate, clock, transitions):
    """Many threads ask and conclude until the state has changed so often; what was wrong on the way.

    The clock moves whenever somebody is turned away.
    """
    breaker, faults, start = gate._by_lane[0], [], threading.Barrier(THREADS)

    def storm(seed):
        chance = random.Random(seed)
        start.wait()
        for _ in range(200 * transitions):  # ends the race when a breaker is stuck
            if breaker._era >= transitions:
                return
            granted = gate.ask(1)
            if isinstance(granted, Rejected):
                clock.advance(SECOND // 7)
                continue
            if breaker._probes_out + breaker._probes_ok > PROBES or breaker._probes_out < 0:
                faults.append((breaker._probes_out, breaker._probes_ok))
            if chance.random() < 0.2:
                gate.take_back(granted)
            else:
                gate.tell(granted, chance.choice([EndState.OK, EndState.OK, EndState.FAILED, EndState.CANCELLED]))

    crew = [threading.Thread(target=storm, args=(seed,)) for seed in range(THREADS)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return faults


def probes_after_all_has_ended(gate, clock):
    """How many probes this half-open era gets in all, and the state when all have succeeded."""
    while gate.stats()["breakers"]["default"] == "closed":
        gate.tell(gate.ask(1), EndState.FAILED)
    clock.advance(SECOND)
    succeeded = gate._by_lane[0]._probes_ok
    passed = [granted for granted in (gate.ask(1) for _ in range(PROBES + 5)) if isinstance(granted, Pass)]
    for granted in passed:
        gate.tell(granted, EndState.OK)
    return succeeded + len(passed), gate.stats()["breakers"]["default"]


@pytest.fixture
def crowded():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


RACES = [pytest.param(1_000, id="smoke"), pytest.param(100_000, id="full", marks=pytest.mark.slow)]


@pytest.mark.parametrize("transitions", RACES)
def test_sixty_four_threads_never_get_more_probes_than_there_are_and_lose_none(crowded, told, transitions):
    clock = ManualClock(start_ns=SECOND)
    gate = build_gate(fields.replace(ServerSettings(model="noop"), CHANGES), clock)
    faults = race(gate, clock, transitions)
    told("R13", TARGET, threads=THREADS, transitions=gate._by_lane[0]._era, faults=len(faults))
    assert (faults, gate.stats()["in_hand"]) == ([], 0)
    assert gate._by_lane[0]._era >= transitions
    assert probes_after_all_has_ended(gate, clock) == (PROBES, "closed")


def test_the_race_finds_a_breaker_that_loses_permits(crowded):
    """The control: one that forgets probes whose outcome says nothing has none left to give."""

    class Forgetful(Breaker):
        def abandoned(self, permit):
            pass

    clock = ManualClock(start_ns=SECOND)
    rule = BreakerRule(failure_ratio=0.5, window=4, least=2, open_ns=SECOND, probes=PROBES)
    gate = Gate(clock, {"default": Forgetful(rule)}, None, None)
    for _ in range(2):
        gate.tell(gate.ask(1), EndState.FAILED)
    clock.advance(SECOND)
    gate.take_back(gate.ask(1))
    assert probes_after_all_has_ended(gate, clock) == (PROBES - 1, "half_open")
