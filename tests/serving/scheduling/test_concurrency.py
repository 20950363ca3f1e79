"""Does the limit hold, and does the adaptive one find what the service can do in time?"""

from __future__ import annotations

import heapq
import random

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perfkit.records import EndState
from perfkit.serving.scheduling.concurrency import AdaptiveLimit, Ended, FixedLimit

MS = 1_000_000
SECOND = 1000 * MS


def test_as_many_as_the_limit_are_in_hand_and_no_more():
    limit = FixedLimit(3)
    assert [limit.enter(1) is None for _ in range(4)] == [True, True, True, False]
    limit.leave(Ended(1, 50 * MS), now_ns=SECOND)
    assert [limit.enter(1) is None for _ in range(2)] == [True, False]


def test_all_inputs_of_a_request_enter_or_none_and_a_large_request_waits_for_an_idle_service():
    limit = FixedLimit(3)
    assert (limit.enter(2), limit.enter(2).reason, limit.in_hand) == (None, "concurrency_limit", 2)
    limit.give_back(2)
    assert (limit.enter(5), limit.enter(1).reason, limit.in_hand) == (None, "concurrency_limit", 5)


def test_retry_after_is_the_time_that_requests_take():
    limit = FixedLimit(1)
    for _ in range(200):
        limit.enter(1)
        limit.leave(Ended(1, 3 * SECOND), now_ns=SECOND)
    limit.enter(1)
    assert limit.enter(1).retry_after_s == 3.0


def test_one_slow_spell_shrinks_the_limit_once():
    limit = AdaptiveLimit(ceiling=100, target_ns=200 * MS)
    for _ in range(50):
        limit.enter(1)
    for at_ms in range(50):
        limit.leave(Ended(1, 201 * MS), now_ns=SECOND + at_ms * MS)
    assert limit.limit == 90
    limit.enter(1)
    limit.leave(Ended(1, 201 * MS), now_ns=SECOND + 200 * MS)
    assert limit.limit == 81


def test_the_limit_grows_by_one_for_every_limit_of_answers_in_time_but_only_while_it_is_used():
    limit = AdaptiveLimit(ceiling=10, target_ns=200 * MS)
    limit.enter(1)
    limit.leave(Ended(1, 1 * MS, EndState.EXPIRED), now_ns=SECOND)
    assert limit.limit == 9
    for _ in range(100):  # one at a time: the limit is not what holds anybody back
        limit.enter(1)
        limit.leave(Ended(1, 1 * MS), now_ns=SECOND)
    assert limit.limit == 9
    for _ in range(9):
        limit.enter(9)
        for _ in range(3):
            limit.leave(Ended(3, 1 * MS), now_ns=SECOND)
    assert limit.limit == 10, "and never above its ceiling"


def test_what_fails_at_once_does_not_make_the_limit_grow():
    limit = AdaptiveLimit(ceiling=10, target_ns=200 * MS)
    limit.enter(1)
    limit.leave(Ended(1, 1 * MS, EndState.EXPIRED), now_ns=SECOND)
    for _ in range(50):
        limit.enter(9)
        limit.leave(Ended(9, 1 * MS, EndState.FAILED), now_ns=SECOND)
    assert limit.limit == 9


def simulate(limit, workers, service_ns, load_rps, seconds):
    """An overloaded service with one queue, in virtual time: latencies of what was answered, and how many were."""
    chance, now_ns, ends, free_at = random.Random(7), 0, [], [0] * workers
    latencies = []
    while now_ns < seconds * SECOND:
        now_ns += round(chance.expovariate(load_rps) * SECOND)
        while ends and ends[0][0] <= now_ns:
            end_ns, began_ns = heapq.heappop(ends)
            limit.leave(Ended(1, end_ns - began_ns), end_ns)
            latencies.append(end_ns - began_ns)
        if limit.enter(1) is None:
            start_ns = max(now_ns, heapq.heappop(free_at))
            heapq.heappush(free_at, start_ns + service_ns)
            heapq.heappush(ends, (start_ns + service_ns, now_ns))
    return latencies


def test_under_overload_the_adaptive_limit_holds_latency_at_the_target_and_keeps_the_workers_busy():
    """Simulated: 4 workers of 20 ms serve 200 rps; 600 rps come. Unlimited, a request would wait for minutes."""
    limit = AdaptiveLimit(ceiling=1000, target_ns=200 * MS)
    latencies = simulate(limit, workers=4, service_ns=20 * MS, load_rps=600, seconds=120)
    settled = sorted(latencies[len(latencies) // 2 :])
    assert settled[len(settled) * 99 // 100] <= 220 * MS
    assert len(latencies) >= 0.97 * 200 * 120
    fixed = simulate(FixedLimit(1000), workers=4, service_ns=20 * MS, load_rps=600, seconds=120)
    assert sorted(fixed)[len(fixed) // 2] > 4 * SECOND, "the control: a limit that is too wide does not help"


ENDS = [EndState.OK, EndState.OK, EndState.FAILED, EndState.EXPIRED, EndState.CANCELLED]


class Hand(RuleBasedStateMachine):
    """Requests come and go in any order; a naive count stands beside the adaptive limit."""

    def __init__(self):
        super().__init__()
        self.limit = AdaptiveLimit(ceiling=12, target_ns=50)
        self.in_hand = []
        self.now_ns = 0

    @rule(by_ns=st.integers(0, 80))
    def time_passes(self, by_ns):
        self.now_ns += by_ns

    @rule(count=st.integers(1, 15))
    def come(self, count):
        may = not self.in_hand or sum(self.in_hand) + count <= self.limit.limit
        assert (self.limit.enter(count) is None) == may
        if may:
            self.in_hand.append(count)

    @precondition(lambda self: self.in_hand)
    @rule(latency_ns=st.integers(0, 100), state=st.sampled_from(ENDS), data=st.data())
    def go(self, latency_ns, state, data):
        count = self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1)))
        before = self.limit.limit
        self.limit.leave(Ended(count, latency_ns, state), self.now_ns)
        after = self.limit.limit
        if state is EndState.EXPIRED or latency_ns > 50:
            assert after <= before
        else:
            assert before <= after <= before + (state is EndState.OK)

    @precondition(lambda self: self.in_hand)
    @rule()
    def turned_away_elsewhere(self):
        self.limit.give_back(self.in_hand.pop())

    @invariant()
    def counts_are_exact_and_somebody_may_always_pass(self):
        assert self.limit.in_hand == sum(self.in_hand)
        assert 1 <= self.limit.limit <= 12


TestHand = Hand.TestCase
