"""Does the breaker open when it must, try exactly as many as it may, and lose no permit?"""

from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perfkit.serving.scheduling.breaker import Breaker, BreakerRule, BreakerState
from perfkit.serving.scheduling.decisions import Rejected

SECOND = 1_000_000_000
RULE = BreakerRule(failure_ratio=0.5, window=6, least=4, open_ns=SECOND, probes=3)
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
LEGAL = {(CLOSED, OPEN), (OPEN, HALF_OPEN), (HALF_OPEN, CLOSED), (HALF_OPEN, OPEN)}


def broken(at_ns=0):
    """A breaker that has just opened."""
    breaker = Breaker(RULE)
    for _ in range(RULE.least):
        breaker.failed(breaker.ask(at_ns), at_ns)
    return breaker


def test_it_opens_on_the_failed_share_of_the_last_outcomes_and_not_before_enough_are_known():
    breaker = Breaker(RULE)
    for _ in range(3):
        breaker.failed(breaker.ask(0), 0)
    assert breaker.state(0) is CLOSED
    breaker.failed(breaker.ask(0), 0)
    assert breaker.state(0) is OPEN


def test_old_outcomes_leave_the_window():
    breaker = Breaker(RULE)
    for outcome in "FFSSSSSSF":
        permit = breaker.ask(0)
        breaker.failed(permit, 0) if outcome == "F" else breaker.succeeded(permit)
    assert breaker.state(0) is CLOSED
    for _ in range(2):
        breaker.failed(breaker.ask(0), 0)
    assert breaker.state(0) is OPEN


def test_while_open_nothing_passes_and_the_time_until_it_tries_again_is_told():
    breaker = broken()
    assert breaker.ask(SECOND // 4) == Rejected(reason="breaker_open", retry_after_s=0.75)
    assert breaker.state(SECOND - 1) is OPEN
    assert breaker.state(SECOND) is HALF_OPEN


def test_exactly_as_many_probes_pass_and_when_all_succeed_it_is_closed():
    breaker = broken()
    asked = [breaker.ask(SECOND) for _ in range(5)]
    assert [isinstance(permit, int) for permit in asked] == [True, True, True, False, False]
    for permit in asked[:2]:
        breaker.succeeded(permit)
        assert isinstance(breaker.ask(SECOND), Rejected), "a probe that succeeded makes room for no further one"
    breaker.succeeded(asked[2])
    assert breaker.state(SECOND) is CLOSED


def test_one_failed_probe_opens_it_again_for_the_whole_time():
    breaker = broken()
    permits = [breaker.ask(SECOND) for _ in range(3)]
    breaker.succeeded(permits[0])
    breaker.failed(permits[1], SECOND + 5)
    assert breaker.state(2 * SECOND + 4) is OPEN
    breaker.succeeded(permits[2])
    assert breaker.state(2 * SECOND + 5) is HALF_OPEN
    assert isinstance(breaker.ask(2 * SECOND + 5), int)


def test_a_probe_that_says_nothing_makes_room_for_another():
    breaker = broken()
    permits = [breaker.ask(SECOND) for _ in range(3)]
    breaker.abandoned(permits[0])
    assert [isinstance(breaker.ask(SECOND), int) for _ in range(2)] == [True, False]


def test_what_a_request_of_an_earlier_era_brings_home_changes_nothing():
    breaker = Breaker(RULE)
    late = [breaker.ask(0) for _ in range(3)]
    for _ in range(RULE.least):
        breaker.failed(breaker.ask(0), 0)
    assert breaker.state(SECOND) is HALF_OPEN
    breaker.failed(late[0], SECOND)
    breaker.succeeded(late[1])
    breaker.abandoned(late[2])
    assert breaker.state(SECOND) is HALF_OPEN
    assert [isinstance(breaker.ask(SECOND), int) for _ in range(4)] == [True, True, True, False]


class Life(RuleBasedStateMachine):
    """Requests ask and end in any order while time passes; a naive breaker stands beside the real one."""

    def __init__(self):
        super().__init__()
        self.breaker = Breaker(RULE)
        self.now_ns = 0
        self.state, self.era, self.until_ns = CLOSED, 0, 0
        self.outcomes = []  # of this era
        self.out = []  # (permit, era): given and not concluded

    def goes(self, state):
        assert (self.state, state) in LEGAL
        self.state, self.era, self.outcomes = state, self.era + 1, []

    @rule(by_ns=st.sampled_from([0, 1, SECOND // 3, SECOND - 1, SECOND]))
    def time_passes(self, by_ns):
        self.now_ns += by_ns
        if self.state is OPEN and self.now_ns >= self.until_ns:
            self.goes(HALF_OPEN)

    @rule()
    def ask(self):
        probes = sum(era == self.era for _, era in self.out) + len(self.outcomes)
        may = self.state is CLOSED or (self.state is HALF_OPEN and probes < RULE.probes)
        permit = self.breaker.ask(self.now_ns)
        assert isinstance(permit, int) == may
        if may:
            self.out.append((permit, self.era))
        else:
            wanted_ns = self.until_ns - self.now_ns if self.state is OPEN else RULE.open_ns
            assert permit == Rejected(reason="breaker_open", retry_after_s=wanted_ns / SECOND)

    @precondition(lambda self: self.out)
    @rule(end=st.sampled_from(["succeeded", "failed", "failed", "abandoned"]), data=st.data())
    def conclude(self, end, data):
        self.conclude_one(end, data.draw(st.integers(0, len(self.out) - 1)))

    def conclude_one(self, end, index):
        permit, era = self.out.pop(index)
        if end == "failed":
            self.breaker.failed(permit, self.now_ns)
        else:
            getattr(self.breaker, end)(permit)
        if era == self.era and end != "abandoned":
            self.outcomes.append(end == "failed")
            self.judge()

    def judge(self):
        last = self.outcomes[-RULE.window :]
        if self.state is HALF_OPEN:
            if any(last):
                self.until_ns = self.now_ns + RULE.open_ns
                self.goes(OPEN)
            elif len(last) == RULE.probes:
                self.goes(CLOSED)
        elif last[-1] and len(last) >= RULE.least and sum(last) >= RULE.failure_ratio * len(last):
            self.until_ns = self.now_ns + RULE.open_ns
            self.goes(OPEN)

    @invariant()
    def the_state_is_the_naive_ones(self):
        assert self.breaker.state(self.now_ns) is self.state


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=60)


def live_long(transitions):
    """The same life, driven by chance until the state has changed so often."""
    chance, life = random.Random(13), Life()
    while life.era < transitions:
        deed = chance.random()
        if deed < 0.1:
            life.time_passes(chance.choice([1, SECOND // 3, SECOND]))
        elif deed < 0.55 or not life.out:
            life.ask()
        else:
            end = chance.choice(["succeeded", "failed", "abandoned"])
            life.conclude_one(end, chance.randrange(len(life.out)))
        life.the_state_is_the_naive_ones()
    return life.era


def test_two_thousand_transitions_are_all_legal_and_lose_no_permit():
    assert live_long(2_000) == 2_000


@pytest.mark.slow
def test_a_hundred_thousand_transitions_are_all_legal_and_lose_no_permit():
    assert live_long(100_000) == 100_000
