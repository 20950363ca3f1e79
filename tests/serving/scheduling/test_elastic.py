"""Does the elastic pool grow and shrink exactly as Java's ThreadPoolExecutor does?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perfkit.serving.scheduling.elastic import ElasticLimits, ElasticRule, Placed, place

MS = 1_000_000


@st.composite
def limits(draw):
    core = draw(st.integers(0, 6))
    return ElasticLimits(core=core, max=draw(st.integers(max(1, core), 12)), keep_alive_ns=MS)


@pytest.mark.parametrize(
    ("threads", "room", "placed"),
    [
        (0, 5, Placed(1, 0)),
        (9, 5, Placed(1, 0)),
        (10, 5, Placed(0, 1)),
        (10, 1, Placed(0, 1)),
        (10, 0, Placed(1, 0)),
        (199, 0, Placed(1, 0)),
        (200, 0, None),
        (200, 1, Placed(0, 1)),
    ],
)
def test_core_first_then_the_queue_then_up_to_max_and_then_the_policy(threads, room, placed):
    assert place(1, threads, room, ElasticLimits(core=10, max=200, keep_alive_ns=MS)) == placed


def one_by_one(count, threads, room, limits):
    """Java's execute(), request after request; None as soon as one is turned away."""
    starts = queues = 0
    for _ in range(count):
        if threads < limits.core:
            starts, threads = starts + 1, threads + 1
        elif room:
            queues, room = queues + 1, room - 1
        elif threads < limits.max:
            starts, threads = starts + 1, threads + 1
        else:
            return None
    return Placed(starts, queues)


@given(st.integers(1, 20), st.integers(0, 12), st.integers(0, 8), limits())
def test_many_at_once_are_placed_as_one_after_the_other_would_be(count, threads, room, limits):
    threads = min(threads, limits.max)
    assert place(count, threads, room, limits) == one_by_one(count, threads, room, limits)


def test_a_deep_queue_keeps_the_pool_at_its_core():
    """The trap: ten threads and ten thousand places serve three hundred at once with ten threads."""
    rule, room = ElasticRule(ElasticLimits(core=10, max=200, keep_alive_ns=MS)), 10_000
    for _ in range(300):
        placed = rule.place(1, room)
        rule.start(placed.starts)
        room -= placed.queues
    assert (rule.threads, 10_000 - room) == (10, 290)


class JavaPool(RuleBasedStateMachine):
    """A pool of threads that are busy or idle over a bounded queue, beside what Java's rule says of it."""

    def __init__(self):
        super().__init__()
        self.limits = ElasticLimits(core=2, max=5, keep_alive_ns=MS)
        self.rule = ElasticRule(self.limits)
        self.depth, self.queued = 3, 0
        self.busy = self.idle = 0

    @rule()
    def a_request_comes(self):
        before, was_full = self.rule.threads, self.queued == self.depth
        placed = self.rule.place(1, self.depth - self.queued)
        if placed is None:
            assert (before, was_full) == (self.limits.max, True)
            return
        self.rule.start(placed.starts)
        if placed.starts:
            assert before < self.limits.core or was_full, "it grows past its core only when the queue is full"
            self.busy += 1
        else:
            assert before >= self.limits.core
            self.queued += 1
        self._take()

    @precondition(lambda self: self.busy)
    @rule()
    def a_thread_is_done(self):
        self.busy, self.idle = self.busy - 1, self.idle + 1
        self._take()

    @precondition(lambda self: self.idle)
    @rule()
    def a_thread_has_been_idle_for_long(self):
        if self.rule.patience_ns() is None:
            return
        if self.rule.lets_go(self.queued):
            self.idle -= 1
        assert self.rule.threads >= self.limits.core

    def _take(self):
        taken = min(self.idle, self.queued)
        self.idle, self.busy, self.queued = self.idle - taken, self.busy + taken, self.queued - taken

    @invariant()
    def it_knows_its_threads_and_never_has_more_than_max(self):
        assert self.rule.threads == self.busy + self.idle <= self.limits.max
        assert self.rule.threads <= self.rule.peak <= min(self.limits.max, self.rule.started)

    @invariant()
    def threads_above_the_core_alone_have_limited_patience(self):
        expected = MS if self.rule.threads > self.limits.core else None
        assert self.rule.patience_ns() == expected


TestJavaPool = JavaPool.TestCase


def test_without_a_core_something_that_queued_still_finds_a_thread_and_the_last_one_stays_for_it():
    rule = ElasticRule(ElasticLimits(core=0, max=2, keep_alive_ns=MS))
    assert rule.place(1, 5) == Placed(0, 1)
    assert (rule.is_unstaffed(), rule.is_unstaffed(), rule.threads) == (True, False, 1)
    assert [rule.lets_go(queued=1), rule.lets_go(queued=0), rule.threads] == [False, True, 0]
