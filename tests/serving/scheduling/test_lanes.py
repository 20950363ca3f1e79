"""Whose request leaves next when lanes share workers? One story a rule."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from perfkit.serving.scheduling.decisions import Displaced, Idle, Limits, Parked, Send, WaitUntil
from perfkit.serving.scheduling.lanes import Lane, LaneScheduler
from perfkit.serving.scheduling.order import SharedOrder, StrictOrder, Turn

HIGH, LOW = 0, 1


@dataclass(eq=False)
class Item:
    name: str
    lane: int = HIGH
    queued_ns: int = 0
    deadline_ns: int = 0
    is_alone: bool = False

    def __repr__(self):
        return self.name


def two_lanes(order=None, *, max_size=1, max_delay_ns=0, depths=(100, 100), shares=(1.0, 1.0), **policy):
    limits = [Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth, **policy) for depth in depths]
    lanes = {key: Lane(limits[key], Turn(priority=key, share=shares[key])) for key in (HIGH, LOW)}
    return LaneScheduler(limits[0], lanes, order or StrictOrder(None))


def arrive(queue, name, lane, at_ns=0, **more):
    item = Item(name, lane, at_ns, **more)
    assert queue.admit([item], at_ns) is None
    queue.enqueue(item)
    return item


def names(decision):
    return [item.name for item in decision.batch]


def test_the_high_lane_goes_first_whoever_came_first():
    queue = two_lanes()
    arrive(queue, "low", LOW, at_ns=0)
    arrive(queue, "high", HIGH, at_ns=5)
    assert [names(queue.decide(9)), names(queue.decide(9))] == [["high"], ["low"]]
    assert queue.decide(9) == Idle(expired=[])


def test_a_batch_is_filled_from_the_high_lane_first():
    queue = two_lanes(max_size=3)
    for name, lane in (("l1", LOW), ("l2", LOW), ("h1", HIGH), ("h2", HIGH)):
        arrive(queue, name, lane)
    assert [names(queue.decide(0)), names(queue.decide(0))] == [["h1", "h2", "l1"], ["l2"]]


def test_lanes_of_one_priority_go_by_age():
    queue = two_lanes()
    queue.lanes[LOW].turn.priority = 0
    arrive(queue, "second", HIGH, at_ns=2)
    arrive(queue, "first", LOW, at_ns=1)
    assert [names(queue.decide(3)), names(queue.decide(3))] == [["first"], ["second"]]


def test_a_lane_has_its_own_depth_and_a_full_one_rejects_nobody_elses_requests():
    queue = two_lanes(depths=(1, 2))
    arrive(queue, "h", HIGH)
    assert queue.admit([Item("more", HIGH)], 0).reason == "queue_full"
    assert queue.admit([Item("l1", LOW), Item("l2", LOW)], 0) is None
    assert queue.admit([Item("l3", LOW)], 0).reason == "queue_full"
    assert (queue.counts_of(HIGH), queue.counts_of(LOW), queue.admitted, queue.queued) == ((1, 1), (0, 2), 3, 1)


def test_a_full_lane_meets_the_policy_with_its_own_requests():
    queue = two_lanes(depths=(1, 1), policy="drop_oldest")
    arrive(queue, "h", HIGH)
    low = arrive(queue, "l", LOW)
    assert queue.admit([Item("new", LOW)], 0) == Displaced([low], retry_after_s=pytest.approx(0.1))


def test_each_lane_has_its_own_door():
    queue = two_lanes(depths=(1, 1), policy="block", block_ns=50)
    arrive(queue, "h", HIGH)
    arrive(queue, "l", LOW)
    outside = Item("outside", LOW)
    assert queue.admit([outside], 7) == Parked(until_ns=57)
    assert names(queue.decide(8)) == ["h"]
    assert queue.let_in() == []
    assert names(queue.decide(8)) == ["l"]
    assert queue.let_in() == [outside]
    queue.admit([Item("late", LOW)], 8)
    assert (queue.next_turn_away_ns(), queue.parked) == (58, 1)
    assert [item.name for item in queue.turn_away(58)[0]] == ["late"]


def test_the_window_counts_from_the_oldest_request_of_any_lane():
    queue = two_lanes(max_size=4, max_delay_ns=100)
    arrive(queue, "low", LOW, at_ns=0)
    arrive(queue, "high", HIGH, at_ns=60)
    assert queue.decide(99) == WaitUntil(until_ns=100, expired=[])
    assert names(queue.decide(100)) == ["high", "low"]


def test_a_request_past_its_deadline_is_handed_back_whatever_its_lane():
    queue = two_lanes(max_size=2, max_delay_ns=100)
    late = arrive(queue, "late", LOW, at_ns=0, deadline_ns=50)
    assert queue.decide(0) == WaitUntil(until_ns=50, expired=[])
    good = arrive(queue, "good", HIGH, at_ns=1)
    assert queue.decide(50) == WaitUntil(until_ns=101, expired=[late])
    assert queue.decide(101) == Send(batch=[good], due_ns=101, expired=[])


def test_who_wants_to_be_alone_goes_alone_and_waits_for_no_window():
    queue = two_lanes(max_size=4, max_delay_ns=100)
    arrive(queue, "mate", HIGH, at_ns=0)
    arrive(queue, "alone", LOW, at_ns=5, is_alone=True)
    assert queue.is_full_batch
    assert names(queue.decide(5)) == ["alone"]
    assert queue.decide(5) == WaitUntil(until_ns=100, expired=[])


def test_without_aging_a_low_lane_starves():
    queue = two_lanes(StrictOrder(None))
    arrive(queue, "low", LOW, at_ns=0)
    for number in range(500):
        arrive(queue, "high", HIGH, at_ns=number)
        assert names(queue.decide(number)) == ["high"]


def test_with_aging_one_request_in_ten_is_of_the_lane_that_is_passed_over():
    queue = two_lanes(StrictOrder(aging_ns=100), depths=(1000, 1000))
    for _ in range(300):
        arrive(queue, "low", LOW, at_ns=0)
        arrive(queue, "high", HIGH, at_ns=0)
    early = [names(queue.decide(99))[0] for _ in range(20)]
    aged = [names(queue.decide(100))[0] for _ in range(200)]
    assert early == ["high"] * 20
    assert (aged[0], aged.count("low")) == ("low", 20)


def test_shares_divide_what_leaves():
    queue = two_lanes(SharedOrder(), shares=(3.0, 1.0))
    for _ in range(100):
        arrive(queue, "big", HIGH)
        arrive(queue, "small", LOW)
    left = [names(queue.decide(0))[0] for _ in range(80)]
    assert left.count("small") == 20
    assert max(left[at : at + 4].count("small") for at in range(0, 80, 4)) <= 2


def test_a_share_that_was_not_used_is_not_saved_up():
    queue = two_lanes(SharedOrder())
    for _ in range(50):
        arrive(queue, "busy", HIGH)
        queue.decide(0)
    for _ in range(20):
        arrive(queue, "busy", HIGH)
        arrive(queue, "back", LOW)
    left = [names(queue.decide(0))[0] for _ in range(20)]
    assert left.count("back") == 10


def test_draining_rejects_in_every_lane_and_sends_what_waits():
    queue = two_lanes(max_size=8, max_delay_ns=1_000)
    arrive(queue, "h", HIGH)
    arrive(queue, "l", LOW)
    queue.drain()
    assert [queue.admit([Item("x", lane)], 0).reason for lane in (HIGH, LOW)] == ["draining", "draining"]
    assert names(queue.decide(0)) == ["h", "l"]


def test_a_late_request_in_the_middle_of_a_lane_is_not_sent_with_its_mates():
    queue = two_lanes(max_size=3)
    arrive(queue, "a", LOW)
    late = arrive(queue, "late", LOW, deadline_ns=5)
    arrive(queue, "b", LOW)
    decision = queue.decide(10)
    assert (names(decision), decision.expired) == (["a", "b"], [late])
    assert (queue.admitted, queue.queued) == (0, 0)


def test_a_lane_whose_batch_turned_out_to_be_late_is_passed_over():
    queue = two_lanes(max_size=1)
    late = [arrive(queue, name, HIGH, deadline_ns=5) for name in "xy"]
    arrive(queue, "good", LOW)
    decision = queue.decide(10)
    assert (names(decision), decision.expired) == (["good"], late)
