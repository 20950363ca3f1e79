"""Do lanes keep their promises whatever comes in whatever order? Random lives in virtual time."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from perfkit.serving.scheduling.decisions import Limits, Send, WaitUntil
from perfkit.serving.scheduling.lanes import Lane, LaneScheduler
from perfkit.serving.scheduling.order import AGED_EVERY, SharedOrder, StrictOrder, Turn
from perfkit.serving.scheduling.scheduler import Scheduler

LANES = 3


class Item:
    def __init__(self, number, lane, *, deadline_ns=0, is_alone=False):
        self.number = number
        self.lane = lane
        self.queued_ns = 0
        self.deadline_ns = deadline_ns
        self.is_alone = is_alone

    def __repr__(self):
        return f"#{self.number}"


def lanes_of(limits, order, shares=(1.0,) * LANES):
    lanes = {key: Lane(limits, Turn(priority=key, share=share)) for key, share in enumerate(shares)}
    return LaneScheduler(limits, lanes, order)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(0, LANES - 1), st.booleans(), st.sampled_from([0, 0, 20, 90])),
        st.tuples(st.just("worker"), st.just(0), st.just(False), st.just(0)),
        st.tuples(st.just("time"), st.integers(1, 60), st.just(False), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 50), st.just(False), st.just(0)),
    ),
    max_size=80,
)
ORDERS = st.sampled_from([lambda: StrictOrder(None), lambda: StrictOrder(30), SharedOrder])


class Life:
    """Drives lanes beside a naive list of what waits, and checks each decision against it."""

    def __init__(self, limits, order):
        self.limits = limits
        self.queue = lanes_of(limits, order, shares=(1.0, 3.0, 0.5))
        self.is_strict = isinstance(order, StrictOrder) and order._aging_ns is None
        self.now_ns = 1_000
        self.waiting = []
        self.fates = {}
        self.count = 0

    def arrive(self, lane, is_alone, patience_ns):
        deadline_ns = patience_ns and self.now_ns + patience_ns
        item = Item(self.count, lane, deadline_ns=deadline_ns, is_alone=is_alone)
        self.count += 1
        mates = sum(other.lane == lane for other in self.waiting)
        admission = self.queue.admit([item], self.now_ns)
        assert (admission is None) == (mates < self.limits.depth), "each lane has its own depth"
        if admission is not None:
            self.fates[item.number] = "rejected"
            return
        item.queued_ns = self.now_ns
        self.queue.enqueue(item)
        self.waiting.append(item)

    def cancel(self, place, *_):
        if self.waiting:
            item = self.waiting.pop(place % len(self.waiting))
            assert self.queue.cancel(item)
            assert not self.queue.cancel(item)
            self.fates[item.number] = "cancelled"

    def time(self, by_ns, *_):
        self.now_ns += by_ns

    def worker(self, *_):
        decision = self.queue.decide(self.now_ns)
        for item in decision.expired:
            assert 0 < item.deadline_ns <= self.now_ns
            self._leaves(item, "expired")
        if isinstance(decision, Send):
            self._sent(decision)
        elif isinstance(decision, WaitUntil):
            oldest_ns = min(item.queued_ns for item in self.waiting)
            assert self.now_ns < decision.until_ns <= oldest_ns + self.limits.max_delay_ns, "no window is exceeded"
            assert len(self.waiting) < self.limits.max_size
            assert not any(item.is_alone for item in self.waiting)
        else:
            assert self.waiting == []

    def _sent(self, decision):
        batch = decision.batch
        assert 1 <= len(batch) <= self.limits.max_size
        assert len(batch) == 1 or not any(item.is_alone for item in batch), "who wants to be alone is alone"
        assert all(not 0 < item.deadline_ns <= self.now_ns for item in batch)
        for item in batch:
            older = [o for o in self.waiting if o.lane == item.lane and o.is_alone == item.is_alone]
            assert older[0] is item, "within a lane in order"
            self._leaves(item, "sent")
        if self.is_strict and not batch[0].is_alone:
            above = [o for o in self.waiting if o.lane < max(item.lane for item in batch) and not o.is_alone]
            assert above == [], "nothing leaves while something of a higher lane stays"

    def _leaves(self, item, fate):
        assert item.number not in self.fates, "nothing leaves twice"
        self.fates[item.number] = fate
        self.waiting.remove(item)


@settings(max_examples=200)
@given(
    steps=STEPS,
    order=ORDERS,
    max_size=st.integers(1, 4),
    max_delay_ns=st.sampled_from([0, 0, 40]),
    depth=st.integers(1, 8),
)
def test_each_admitted_item_leaves_exactly_once_and_no_limit_is_exceeded(steps, order, max_size, max_delay_ns, depth):
    life = Life(Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth), order())
    for deed, *arguments in steps:
        getattr(life, deed)(*arguments)
        assert (life.queue.admitted, life.queue.queued) == (len(life.waiting), len(life.waiting))
    life.now_ns += 1_000
    while life.waiting:
        life.worker()
    assert sorted(life.fates) == list(range(life.count))


def keep_full(queue, lanes, number, now_ns):
    """Every lane of these has something that waits."""
    for lane in lanes:
        while queue.counts_of(lane)[0] < 12:  # more than a batch takes
            item = Item(next(number), lane)
            item.queued_ns = now_ns
            assert queue.admit([item], now_ns) is None
            queue.enqueue(item)


@settings(max_examples=40)
@given(
    shares=st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.0]), min_size=LANES, max_size=LANES),
    max_size=st.integers(1, 5),
    batches=st.integers(1, 120),
)
def test_over_a_busy_period_the_shares_hold_within_one_item_of_each(shares, max_size, batches):
    queue = lanes_of(Limits(max_size=max_size, max_delay_ns=0, depth=100), SharedOrder(), shares)
    number = iter(range(10**9))
    left = [0] * LANES
    for now_ns in range(batches):
        keep_full(queue, range(LANES), number, now_ns)
        for item in queue.decide(now_ns).batch:
            left[item.lane] += 1
    for one in range(LANES):
        for other in range(LANES):
            bound = 1 / shares[one] + 1 / shares[other]
            assert abs(left[one] / shares[one] - left[other] / shares[other]) <= bound + 1e-6


@settings(max_examples=25)
@given(aging_ns=st.integers(1, 60), max_size=st.integers(1, 6), busy=st.integers(1, 2))
def test_no_first_request_waits_beyond_its_aging_and_ten_items_for_every_lane(aging_ns, max_size, busy):
    """A flood of the high lanes, one request below them: with aging none starves."""
    queue = lanes_of(Limits(max_size=max_size, max_delay_ns=0, depth=100), StrictOrder(aging_ns))
    number = iter(range(10**9))
    bound_ns = aging_ns + AGED_EVERY * busy  # one batch a nanosecond, so an item takes at most one
    for now_ns in range(1_000, 1_000 + 3 * bound_ns, bound_ns):
        low = Item(next(number), LANES - 1)
        low.queued_ns = now_ns
        queue.admit([low], now_ns)
        queue.enqueue(low)
        sent_ns = None
        for later_ns in range(now_ns, now_ns + bound_ns):
            keep_full(queue, range(busy), number, later_ns)
            if low in queue.decide(later_ns).batch:
                sent_ns = later_ns
        assert sent_ns is not None, f"not within {bound_ns} ns"
        assert sent_ns - now_ns >= min(aging_ns, 1), "and not at once"


@settings(max_examples=20)
@given(max_size=st.integers(1, 8))
def test_under_two_floods_the_low_lane_keeps_a_twentieth_and_the_high_lane_nine_tenths(max_size):
    queue = lanes_of(Limits(max_size=max_size, max_delay_ns=0, depth=100), StrictOrder(5))
    number = iter(range(10**9))
    left = [0] * LANES
    for now_ns in range(1_000, 1_300):
        for item in queue.decide(now_ns).batch if queue.queued else []:
            left[item.lane] += 1
        keep_full(queue, (0, 2), number, now_ns)
    assert left[2] >= 0.05 * sum(left)
    assert left[0] >= 0.88 * sum(left)


@settings(max_examples=100)
@given(steps=STEPS, max_size=st.integers(1, 4), max_delay_ns=st.sampled_from([0, 40]), depth=st.integers(1, 8))
def test_one_lane_decides_as_no_lanes_do(steps, max_size, max_delay_ns, depth):
    limits = Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth)
    plain, laned = Scheduler(limits), LaneScheduler(limits, {0: Lane(limits, Turn(priority=1, share=1))}, SharedOrder())
    now_ns, items = 1_000, []
    for deed, value, is_alone, patience_ns in steps:
        if deed == "time":
            now_ns += value
        elif deed == "arrive":
            item = Item(len(items), 0, deadline_ns=patience_ns and now_ns + patience_ns, is_alone=is_alone)
            item.queued_ns = now_ns
            answers = [queue.admit([item], now_ns) for queue in (plain, laned)]
            assert (answers[0] is None) == (answers[1] is None)
            if answers[0] is None:
                items.append(item)
                plain.enqueue(item)
                laned.enqueue(item)
        elif deed == "cancel" and items:
            item = items[value % len(items)]
            assert plain.cancel(item) == laned.cancel(item)
        elif deed == "worker":
            one, other = plain.decide(now_ns), laned.decide(now_ns)
            assert type(one) is type(other)
            assert sorted(map(repr, one.expired)) == sorted(map(repr, other.expired))
            assert getattr(one, "batch", None) == getattr(other, "batch", None)
            assert getattr(one, "until_ns", None) == getattr(other, "until_ns", None)
