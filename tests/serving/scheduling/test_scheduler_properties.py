"""Does the scheduler keep its promises whatever happens in whatever order? A random life in virtual time.

The model beside it is naive on purpose: a list of what waits and a count of what was admitted.
"""

from __future__ import annotations

import math
from copy import deepcopy

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from perfkit.serving.scheduling.decisions import (
    CallerRuns,
    Displaced,
    Idle,
    Limits,
    Parked,
    Rejected,
    Send,
    WaitUntil,
)
from perfkit.serving.scheduling.scheduler import Scheduler


class Item:
    def __init__(self, number, deadline_ns):
        self.number = number
        self.queued_ns = 0
        self.deadline_ns = deadline_ns
        self.is_alone = False
        self.lane = 0

    def __repr__(self):
        return f"#{self.number}"


class Life(RuleBasedStateMachine):
    """Arrivals, preprocess, workers, cancels, deadlines and drain, with time in between."""

    in_preprocess = Bundle("in_preprocess")

    def __init__(self):
        super().__init__()
        self.now_ns = 1_000
        self.admitted = 0
        self.waiting = []  # in order
        self.at_door = []  # items and until when they wait there, in order
        self.fates = {}  # number -> what became of it
        self.is_draining = False
        self.next_number = 0
        self.limits = Limits(max_size=1, max_delay_ns=0, depth=1)
        self.queue = Scheduler(self.limits)

    @precondition(lambda self: self.next_number == 0)
    @rule(
        max_size=st.integers(1, 5),
        max_delay_ns=st.sampled_from([0, 0, 30, 100]),
        depth=st.integers(1, 12),
        policy=st.sampled_from(["reject", "block", "caller_runs", "drop_oldest", "discard", "shed"]),
    )
    def configure(self, max_size, max_delay_ns, depth, policy):
        self.limits = Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth, policy=policy, block_ns=50)
        self.queue = Scheduler(self.limits)
        self.is_draining = False

    @rule(by_ns=st.integers(0, 60))
    def time_passes(self, by_ns):
        self.now_ns += by_ns

    @rule(target=in_preprocess, patience_ns=st.one_of(st.just(0), st.integers(1, 120)))
    def arrive(self, patience_ns):
        item = Item(self.next_number, patience_ns and self.now_ns + patience_ns)
        self.next_number += 1
        admission = self.queue.admit([item], self.now_ns)
        is_full = self.admitted >= self.limits.depth or bool(self.at_door)
        if isinstance(admission, Rejected) and admission.reason == "shed":
            assert self.limits.policy == "shed"
            assert item.deadline_ns
        else:
            assert (admission is not None) == (self.is_draining or is_full)
        if admission is None:
            self.admitted += 1
            return item
        return self._not_admitted(item, admission)

    def _not_admitted(self, item, admission):
        policy = self.limits.policy
        if isinstance(admission, Displaced):
            assert policy == "drop_oldest"
            assert list(admission.items) == self.waiting[:1]
            self.fates[self.waiting.pop(0).number] = "dropped"
            return item
        if isinstance(admission, Parked):
            assert policy == "block"
            assert self.now_ns <= admission.until_ns <= self.now_ns + 50
            self.at_door.append((item, admission.until_ns))
            return None
        if isinstance(admission, CallerRuns):
            assert policy == "caller_runs"
        else:
            expected = {"draining": self.is_draining, "discarded": policy == "discard", "shed": policy == "shed"}
            assert expected.get(admission.reason, admission.reason == "queue_full")
            assert math.isfinite(admission.retry_after_s)
            assert 0.1 <= admission.retry_after_s <= 60
        self.fates[item.number] = "not admitted"
        return None

    @precondition(lambda self: self.at_door)
    @rule(target=in_preprocess)
    def one_comes_in_from_the_door(self):
        """The driver asks after every change; here it may be late, so that several come in at once."""
        room = len(self.at_door) if self.is_draining else self.limits.depth - self.admitted
        expected = [item for item, _ in self.at_door[: max(0, room)]]
        entered = self.queue.let_in()
        assert entered == expected, "in the order in which they came, and as many as fit"
        self.at_door = self.at_door[len(entered) :]
        self.admitted += len(entered)
        for item in entered[1:]:
            self.preprocess_ends_of(item)
        return entered[0] if entered else None

    @precondition(lambda self: self.at_door)
    @rule()
    def the_late_are_turned_away(self):
        late, _ = self.queue.turn_away(self.now_ns)
        assert late == [item for item, until_ns in self.at_door if until_ns <= self.now_ns]
        self.at_door = [(item, until_ns) for item, until_ns in self.at_door if until_ns > self.now_ns]
        assert self.queue.next_turn_away_ns() == min((until_ns for _, until_ns in self.at_door), default=None)
        for item in late:
            self.fates[item.number] = "turned away"

    @precondition(lambda self: self.at_door)
    @rule(data=st.data())
    def client_leaves_the_door(self, data):
        place = data.draw(st.sampled_from(range(len(self.at_door))))
        item, _ = self.at_door.pop(place)
        assert self.queue.cancel(item) is True
        assert self.queue.cancel(item) is False
        self.fates[item.number] = "cancelled"

    @rule(item=consumes(in_preprocess))
    def preprocess_ends(self, item):
        if item is not None:
            self.preprocess_ends_of(item)

    def preprocess_ends_of(self, item):
        item.queued_ns = self.now_ns
        self.queue.enqueue(item)
        self.waiting.append(item)

    @rule(item=consumes(in_preprocess))
    def preprocess_fails(self, item):
        if item is not None:
            self.queue.withdraw(item)
            self.admitted -= 1
            self.fates[item.number] = "failed"

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def client_leaves(self, data):
        item = data.draw(st.sampled_from(self.waiting))
        assert self.queue.cancel(item) is True
        assert self.queue.cancel(item) is False
        self.waiting.remove(item)
        self.admitted -= 1
        self.fates[item.number] = "cancelled"

    @rule()
    def drain(self):
        self.queue.drain()
        self.is_draining = True

    @rule()
    def worker_becomes_free(self):
        twin = deepcopy(self.queue)
        decision = self.queue.decide(self.now_ns)
        assert repr(twin.decide(self.now_ns)) == repr(decision), "the same state at the same time decides the same"
        self._expire(decision.expired)
        if isinstance(decision, Send):
            self._send(decision)
        elif isinstance(decision, WaitUntil):
            first = self.waiting[0]
            assert len(self.waiting) < self.limits.max_size
            assert not self.is_draining
            due_ns = first.queued_ns + self.limits.max_delay_ns
            assert decision.until_ns == min(due_ns, first.deadline_ns or due_ns)
            assert self.now_ns < decision.until_ns, "a batch that is due never waits for a free worker"
        else:
            assert isinstance(decision, Idle)
            assert self.waiting == []

    def _expire(self, expired):
        for item in expired:
            assert 0 < item.deadline_ns <= self.now_ns
            self.waiting.remove(item)
            self.admitted -= 1
            self.fates[item.number] = "expired"

    def _send(self, decision):
        batch = decision.batch
        assert batch == self.waiting[: len(batch)], "the oldest leave, in order"
        assert 1 <= len(batch) <= self.limits.max_size
        assert all(not 0 < item.deadline_ns <= self.now_ns for item in batch)
        full = len(batch) + len(decision.expired) >= self.limits.max_size
        assert full or self.is_draining or self.now_ns >= batch[0].queued_ns + self.limits.max_delay_ns
        assert batch[0].queued_ns <= decision.due_ns <= self.now_ns
        for item in batch:
            assert item.number not in self.fates, "nothing leaves twice"
            self.fates[item.number] = "sent"
        self.waiting = self.waiting[len(batch) :]
        self.admitted -= len(batch)

    @invariant()
    def counts_are_exact(self):
        assert self.queue.admitted == self.admitted
        assert self.admitted <= self.limits.depth or self.is_draining
        assert self.queue.queued == len(self.waiting)
        assert self.queue.parked == len(self.at_door)

    def teardown(self):
        self.queue.drain()
        self.is_draining = True
        if self.at_door:
            self.one_comes_in_from_the_door()
        while self.waiting:
            self.worker_becomes_free()
        in_preprocess = self.admitted
        assert len(self.fates) + in_preprocess == self.next_number, "nothing is lost"


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40)
