"""Do batch size and window follow the arrival rate and stay inside the P99 budget? In virtual time."""

from __future__ import annotations

import heapq
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from perfkit.serving.scheduling.adaptive import AdaptiveBatch, CallTime
from perfkit.serving.scheduling.decisions import Idle, Limits, Send
from perfkit.serving.scheduling.scheduler import Scheduler

MS = 1_000_000


class Item:
    lane, is_alone, deadline_ns = 0, False, 0

    def __init__(self, queued_ns):
        self.queued_ns = queued_ns


def simulate(*, rate_rps, budget_ms, call_ms=(5.0, 1.0), most=64, workers=8, requests=3000, seed=1, noise=0.0):
    """Poisson arrivals, workers that take start + slope x size; latencies without the wait for a worker, in ms."""
    chance = random.Random(seed)
    tuner = AdaptiveBatch(most, round(budget_ms * MS))
    queue = Scheduler(Limits(max_size=1, max_delay_ns=0, depth=None))
    free, sizes, latencies_ms, now_ns = workers, [], [], 1
    events = []  # (time, order, what): None = an arrival, an int = a worker with so many is done
    for order in range(requests):
        now_ns += round(chance.expovariate(rate_rps) * 1e9)
        events.append((now_ns, order, None, 0))
    heapq.heapify(events)
    order = requests
    while events:
        now_ns, _, size, began_ns = heapq.heappop(events)
        if size is None:
            item = Item(now_ns)
            queue.admit([item], now_ns)
            queue.enqueue(item)
            tuner.arrived(now_ns)
        elif size:
            tuner.served(size, now_ns - began_ns)
            free += 1
        queue.max_size, queue.max_delay_ns = tuner.max_size, tuner.max_delay_ns
        queue.max_silence_ns = tuner.max_silence_ns
        while free:
            decision = queue.decide(now_ns)
            if isinstance(decision, Idle):
                break
            order += 1
            if not isinstance(decision, Send):
                heapq.heappush(events, (decision.until_ns, order, 0, 0))
                break
            batch = decision.batch
            took_ns = round((call_ms[0] + call_ms[1] * len(batch)) * chance.lognormvariate(0, noise) * MS)
            sizes.append(len(batch))
            latencies_ms += [(decision.due_ns - item.queued_ns + took_ns) / MS for item in batch]
            heapq.heappush(events, (now_ns + took_ns, order, len(batch), now_ns))
            free -= 1
    return tuner, sizes, latencies_ms


def closed_loop_cycles_ms(*, users, budget_ms, call_ms=(5.0, 0.1), cycles=200):
    """Users who send again 0.05 ms after one another once their batch is done; how long each round took, in ms."""
    tuner = AdaptiveBatch(64, round(budget_ms * MS))
    queue = Scheduler(Limits(max_size=1, max_delay_ns=0, depth=None))
    now_ns, taken = 1, []
    for _ in range(cycles):
        began_ns, back = now_ns, []
        for place in range(users):
            item = Item(began_ns + place * MS // 20)
            queue.admit([item], item.queued_ns)
            queue.enqueue(item)
            tuner.arrived(item.queued_ns)
        now_ns += users * MS // 20
        while len(back) < users:
            queue.max_size, queue.max_delay_ns = tuner.max_size, tuner.max_delay_ns
            queue.max_silence_ns = tuner.max_silence_ns
            decision = queue.decide(now_ns)
            if isinstance(decision, Send):
                took_ns = round((call_ms[0] + call_ms[1] * len(decision.batch)) * MS)
                now_ns += took_ns
                tuner.served(len(decision.batch), took_ns)
                back += decision.batch
            else:
                now_ns = decision.until_ns
        taken.append((now_ns - began_ns) / MS)
    return taken


def p99(values):
    return sorted(values)[int(0.99 * len(values))]


def test_few_arrivals_leave_alone_and_at_once():
    tuner, sizes, _ = simulate(rate_rps=5, budget_ms=40)
    assert (tuner.max_size, tuner.max_delay_ns, max(sizes[10:])) == (1, 0, 1)


def test_the_size_follows_the_rate():
    medians = []
    for rate_rps in (20, 200, 1_000, 4_000):
        _, sizes, _ = simulate(rate_rps=rate_rps, budget_ms=40)
        medians.append(sorted(sizes[len(sizes) // 2 :])[len(sizes) // 4])
    assert medians == sorted(medians)
    assert medians[0] <= 2
    assert medians[-1] >= 16


def test_the_window_is_what_the_call_leaves_of_the_budget():
    tuner, _, _ = simulate(rate_rps=500, budget_ms=40)
    left_ms = 40 - (5 + 1 * tuner.max_size)
    assert 4 <= tuner.max_size <= 13
    assert tuner.max_delay_ns / MS == pytest.approx(left_ms, abs=1.0)


@settings(max_examples=20)
@given(
    rate_rps=st.sampled_from([50, 300, 1_500]),
    budget_ms=st.sampled_from([15, 40, 120]),
    slope_ms=st.sampled_from([0.1, 1.0]),
    noise=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 99),
)
def test_ninety_nine_in_a_hundred_make_the_budget_while_workers_are_free(rate_rps, budget_ms, slope_ms, noise, seed):
    call_ms = (5.0, slope_ms)
    tuner, sizes, latencies_ms = simulate(
        rate_rps=rate_rps, budget_ms=budget_ms, call_ms=call_ms, seed=seed, noise=noise, requests=2000, workers=50
    )
    settled = latencies_ms[500:]
    assert p99(settled) <= budget_ms * (1.0 if not noise else 1.1)
    assert 1 <= min(sizes) <= max(sizes) <= 64
    assert tuner.max_delay_ns <= budget_ms * MS


@pytest.mark.parametrize("users", [4, 8, 32])
def test_users_who_wait_for_their_answers_are_not_waited_for(users):
    """They would fill no larger batch however long its window is."""
    settled = closed_loop_cycles_ms(users=users, budget_ms=500)[100:]
    one_call_ms = 0.05 * users + 5 + 0.1 * users
    assert max(settled) <= one_call_ms + 1.0


def test_a_budget_below_one_call_turns_batching_off():
    tuner, sizes, _ = simulate(rate_rps=1_000, budget_ms=2)
    assert (tuner.max_size, tuner.max_delay_ns) == (1, 0)
    assert set(sizes[5:]) == {1}


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 200), st.integers(0, 10**9)), max_size=60))
def test_size_and_window_stay_within_their_bounds_whatever_comes(steps):
    tuner, now_ns = AdaptiveBatch(32, 50 * MS), 1
    for is_arrival, size, by_ns in steps:
        now_ns += by_ns
        if is_arrival:
            tuner.arrived(now_ns)
        else:
            tuner.served(size, by_ns)
        assert 1 <= tuner.max_size <= 32
        assert 0 <= tuner.max_delay_ns <= 50 * MS


def test_the_time_of_a_call_is_learnt_as_a_line():
    calls = CallTime()
    for size in [1, 8, 3, 5, 2, 8, 1, 6] * 20:
        calls.add(size, 5 * MS + 2 * MS * size)
    start, slope = calls.line()
    assert (start / MS, slope / MS) == (pytest.approx(5, abs=0.01), pytest.approx(2, abs=0.01))
