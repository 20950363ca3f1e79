"""Which requests wait, which leave together, and when? One story a rule."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

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

SECOND = 1_000_000_000


@dataclass(eq=False)
class Item:
    name: str
    queued_ns: int = 0
    deadline_ns: int = 0
    is_alone: bool = False
    lane: int = 0

    def __repr__(self):
        return self.name


def scheduler(*, max_size=4, max_delay_ns=0, depth=100, **policy):
    return Scheduler(Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth, **policy))


def ask(queue, count=1, at_ns=0):
    """A request with that many inputs asks for admission."""
    return queue.admit([Item(f"input {index}") for index in range(count)], at_ns)


def arrive(queue, name, at_ns, deadline_ns=0):
    """An item is admitted and ready for a worker at once."""
    item = Item(name, at_ns, deadline_ns)
    assert queue.admit([item], at_ns) is None
    queue.enqueue(item)
    return item


def test_an_idle_worker_takes_a_single_request_at_once_when_no_window_is_set():
    queue = scheduler(max_delay_ns=0)
    a = arrive(queue, "a", at_ns=5)
    assert queue.decide(5) == Send(batch=[a], due_ns=5, expired=[])
    assert queue.decide(5) == Idle(expired=[])


def test_a_partial_batch_leaves_when_its_first_request_has_waited_for_the_window():
    queue = scheduler(max_delay_ns=1_000)
    a, b = arrive(queue, "a", at_ns=0), arrive(queue, "b", at_ns=900)
    assert queue.decide(999) == WaitUntil(until_ns=1_000, expired=[])
    assert queue.decide(1_000) == Send(batch=[a, b], due_ns=1_000, expired=[])


def test_a_full_batch_does_not_wait_for_the_window():
    queue = scheduler(max_size=2, max_delay_ns=1_000)
    a = arrive(queue, "a", at_ns=0)
    assert queue.decide(10) == WaitUntil(until_ns=1_000, expired=[])
    b = arrive(queue, "b", at_ns=20)
    assert queue.decide(20) == Send(batch=[a, b], due_ns=20, expired=[])


def test_the_window_of_the_next_batch_counts_from_its_own_first_request():
    queue = scheduler(max_size=2, max_delay_ns=1_000)
    for name, at_ns in (("a", 0), ("b", 100), ("c", 700)):
        arrive(queue, name, at_ns)
    assert [item.name for item in queue.decide(700).batch] == ["a", "b"]
    assert queue.decide(700) == WaitUntil(until_ns=1_700, expired=[])


def test_a_worker_that_comes_late_is_told_when_the_batch_was_due():
    queue = scheduler(max_size=4, max_delay_ns=1_000)
    a, b = arrive(queue, "a", at_ns=0), arrive(queue, "b", at_ns=1_500)
    assert queue.decide(9_000) == Send(batch=[a, b], due_ns=1_000, expired=[])


def test_requests_leave_in_the_order_in_which_they_queued():
    queue = scheduler(max_size=2)
    for name in "abcde":
        arrive(queue, name, at_ns=0)
    batches = [[item.name for item in queue.decide(0).batch] for _ in range(3)]
    assert batches == [["a", "b"], ["c", "d"], ["e"]]
    assert queue.decide(0) == Idle(expired=[])


def test_what_is_admitted_counts_until_a_worker_takes_it():
    queue = scheduler(max_size=1, depth=2)
    assert [ask(queue), ask(queue)] == [None, None]
    assert ask(queue).reason == "queue_full"
    queue.enqueue(Item("a"))
    assert ask(queue).reason == "queue_full"
    queue.decide(0)
    assert ask(queue) is None
    assert (queue.admitted, queue.queued) == (2, 0)


def test_several_inputs_are_admitted_together_or_not_at_all():
    queue = scheduler(depth=3)
    assert ask(queue, 2) is None
    assert ask(queue, 2).reason == "queue_full"
    assert queue.admitted == 2


def test_a_withdrawn_request_leaves_room_for_another():
    queue = scheduler(depth=1)
    ask(queue)
    queue.withdraw(Item("gone"))
    assert ask(queue) is None


def test_a_request_past_its_deadline_is_handed_back_and_never_sent():
    queue = scheduler(max_size=2, max_delay_ns=10)
    late, good = arrive(queue, "late", at_ns=0, deadline_ns=50), arrive(queue, "good", at_ns=1, deadline_ns=80)
    assert queue.decide(50) == Send(batch=[good], due_ns=11, expired=[late])
    assert queue.admitted == 0


def test_a_late_request_in_the_middle_of_the_queue_is_not_sent_with_its_mates():
    queue = scheduler(max_size=3, max_delay_ns=0)
    a = arrive(queue, "a", at_ns=0)
    late = arrive(queue, "late", at_ns=0, deadline_ns=5)
    b = arrive(queue, "b", at_ns=0)
    assert queue.decide(10) == Send(batch=[a, b], due_ns=0, expired=[late])


def test_a_worker_that_finds_only_late_requests_is_told_that_nothing_waits():
    queue = scheduler(max_size=2)
    late = [arrive(queue, name, at_ns=0, deadline_ns=5) for name in "abc"]
    assert queue.decide(5) == Idle(expired=late)


def test_whoever_waits_for_the_window_looks_again_at_the_first_deadline():
    queue = scheduler(max_delay_ns=1_000)
    arrive(queue, "a", at_ns=0, deadline_ns=400)
    assert queue.decide(0) == WaitUntil(until_ns=400, expired=[])


def test_a_deadline_that_passes_exactly_now_has_passed():
    queue = scheduler()
    late = arrive(queue, "late", at_ns=0, deadline_ns=7)
    assert queue.decide(7) == Idle(expired=[late])


def test_a_cancelled_request_is_forgotten_once():
    queue = scheduler(depth=1)
    a = arrive(queue, "a", at_ns=0)
    assert [queue.cancel(a), queue.cancel(a)] == [True, False]
    assert (queue.admitted, queue.decide(0)) == (0, Idle(expired=[]))


def test_a_request_in_a_workers_hands_cannot_be_cancelled_in_the_queue():
    queue = scheduler()
    a = arrive(queue, "a", at_ns=0)
    queue.decide(0)
    assert queue.cancel(a) is False
    assert queue.admitted == 0


def test_draining_admits_nothing_and_sends_what_waits_without_its_window():
    queue = scheduler(max_size=4, max_delay_ns=1_000_000)
    a = arrive(queue, "a", at_ns=0)
    queue.drain()
    assert ask(queue).reason == "draining"
    assert queue.decide(1) == Send(batch=[a], due_ns=0, expired=[])


def test_retry_after_is_the_time_in_which_the_queue_drains_at_the_present_pace():
    queue = scheduler(max_size=1, depth=11)
    for name in "abcdefghijk":
        arrive(queue, name, at_ns=0)
    for batch in range(6):  # one request every 2 s
        queue.decide(batch * 2_000_000_000)
    assert ask(queue, 7) == Rejected(reason="queue_full", retry_after_s=pytest.approx(10.0))


def test_an_idle_pause_is_not_taken_for_a_slow_service():
    queue = scheduler(max_size=1, depth=2)
    arrive(queue, "a", at_ns=1)
    queue.decide(1)
    ten_minutes_ns = 600_000_000_000
    for name in "bc":
        arrive(queue, name, ten_minutes_ns)
    queue.decide(ten_minutes_ns)
    arrive(queue, "d", ten_minutes_ns)
    assert ask(queue) == Rejected(reason="queue_full", retry_after_s=pytest.approx(0.1))


def full(policy, **more):
    """A queue of two places, both taken."""
    queue = scheduler(max_size=1, depth=2, policy=policy, **more)
    return queue, [arrive(queue, name, at_ns=0) for name in "ab"]


def test_with_drop_oldest_a_new_request_takes_the_place_of_the_oldest():
    queue, (a, b) = full("drop_oldest")
    assert ask(queue) == Displaced([a], retry_after_s=pytest.approx(0.1))
    assert (queue.admitted, queue.queued) == (2, 1)
    assert queue.decide(0).batch == [b]


def test_with_drop_oldest_what_is_in_preprocess_is_not_thrown_out():
    queue = scheduler(depth=2, policy="drop_oldest")
    ask(queue, 2)  # neither is queued yet
    assert ask(queue).reason == "queue_full"
    assert queue.admitted == 2


def test_discard_throws_away_what_does_not_fit_and_says_so():
    queue, _ = full("discard")
    assert ask(queue) == Rejected(reason="discarded", retry_after_s=pytest.approx(0.1))


def test_with_caller_runs_whoever_brings_a_request_to_a_full_queue_gets_it_back():
    queue, _ = full("caller_runs")
    assert ask(queue) == CallerRuns()
    assert queue.admitted == 2


def test_a_queue_without_a_depth_takes_everything():
    queue = scheduler(depth=None)
    assert [ask(queue, 1000) for _ in range(100)] == [None] * 100


def test_with_block_a_request_waits_at_the_door_and_comes_in_when_there_is_room():
    queue, (a, _) = full("block", block_ns=500)
    first, second = Item("first"), Item("second")
    assert queue.admit([first], 100) == Parked(until_ns=600)
    assert queue.admit([second], 200) == Parked(until_ns=700)
    assert queue.let_in() == []
    assert queue.decide(300).batch == [a]
    assert queue.let_in() == [first]
    assert (queue.admitted, queue.parked) == (2, 1)


def test_nobody_overtakes_a_large_request_at_the_door():
    queue, _ = full("block", block_ns=500)
    large, small = [Item("l1"), Item("l2")], Item("small")
    queue.admit(large, 0)
    queue.decide(0)
    assert queue.admit([small], 0) == Parked(until_ns=500), "there is room for it, but not for who came before"
    assert queue.let_in() == []
    queue.decide(0)
    assert queue.let_in() == large


def test_who_has_waited_at_the_door_for_too_long_is_turned_away():
    queue, _ = full("block", block_ns=500)
    early, late = Item("early"), Item("late")
    queue.admit([early], 0)
    queue.admit([late], 100)
    assert queue.turn_away(499) == ([], Rejected(reason="blocked", retry_after_s=pytest.approx(0.1)))
    assert queue.turn_away(500)[0] == [early]
    assert queue.next_turn_away_ns() == 600
    assert queue.turn_away(600)[0] == [late]
    assert (queue.next_turn_away_ns(), queue.parked, queue.admitted) == (None, 0, 2)


def test_nobody_waits_at_the_door_beyond_a_deadline():
    queue, _ = full("block", block_ns=500)
    assert queue.admit([Item("a", deadline_ns=300), Item("b", deadline_ns=200)], 0) == Parked(until_ns=200)


def test_a_client_may_leave_while_it_waits_at_the_door():
    queue, _ = full("block", block_ns=500)
    item = Item("gone")
    queue.admit([item], 0)
    assert [queue.cancel(item), queue.cancel(item)] == [True, False]
    assert (queue.parked, queue.admitted) == (0, 2)


def test_draining_lets_in_who_waits_at_the_door():
    queue, _ = full("block", block_ns=500)
    item = Item("last")
    queue.admit([item], 0)
    queue.drain()
    assert queue.let_in() == [item]
    assert queue.admitted == 3


def busy_at_one_per_second(depth=100, max_size=1):
    """A queue whose service has taken one batch each second up to t = 5 s, and that holds 20 more."""
    queue = scheduler(max_size=max_size, depth=depth, policy="shed")
    for index in range(20 + 6 * max_size):
        arrive(queue, str(index), at_ns=0)
    for second in range(6):
        queue.decide(second * SECOND)
    return queue


def test_shed_rejects_at_once_what_would_miss_its_deadline_in_the_queue():
    queue = busy_at_one_per_second()
    fits, misses = Item("fits", deadline_ns=26 * SECOND + 1), Item("misses", deadline_ns=26 * SECOND)
    now_ns = 5 * SECOND + 1
    assert queue.admit([misses], now_ns) == Rejected(reason="shed", retry_after_s=pytest.approx(20.0))
    assert queue.admit([fits], now_ns) is None
    assert queue.admit([Item("patient")], now_ns) is None


def test_shed_counts_in_whole_batches():
    queue = busy_at_one_per_second(max_size=4)  # 20 wait: five batches, the next at 6 s; one more leaves at 11 s
    assert queue.admit([Item("misses", deadline_ns=11 * SECOND)], 5 * SECOND).reason == "shed"
    assert queue.admit([Item("fits", deadline_ns=11 * SECOND + 1)], 5 * SECOND) is None


def test_shed_is_still_bounded_by_the_depth():
    queue = busy_at_one_per_second(depth=26)
    assert ask(queue, 7, at_ns=5 * SECOND).reason == "queue_full"


def alone(queue, name, at_ns):
    """An item that wants a batch to itself."""
    item = Item(name, at_ns, is_alone=True)
    assert queue.admit([item], at_ns) is None
    queue.enqueue(item)
    return item


def test_who_wants_to_be_alone_goes_before_a_window_that_is_still_open():
    queue = scheduler(max_delay_ns=100)
    mate, single = arrive(queue, "mate", at_ns=0), alone(queue, "single", at_ns=10)
    assert queue.is_full_batch, "whoever waits for the window is woken for it"
    assert queue.decide(10) == Send(batch=[single], due_ns=10, expired=[])
    assert queue.decide(10) == WaitUntil(until_ns=100, expired=[])
    assert queue.decide(100).batch == [mate]


def test_who_wants_to_be_alone_waits_its_turn_behind_what_is_due():
    queue = scheduler(max_size=2)
    first, early, late = arrive(queue, "first", at_ns=0), alone(queue, "early", at_ns=1), arrive(queue, "late", at_ns=2)
    last = alone(queue, "last", at_ns=3)
    batches = [queue.decide(9).batch for _ in range(3)]
    assert batches == [[first, late], [early], [last]]
    assert (queue.admitted, queue.queued) == (0, 0)


def test_who_wants_to_be_alone_and_came_first_goes_first():
    queue = scheduler(max_size=2)
    single, mate = alone(queue, "single", at_ns=0), arrive(queue, "mate", at_ns=1)
    assert [queue.decide(9).batch for _ in range(2)] == [[single], [mate]]


def test_drop_oldest_looks_at_those_who_want_to_be_alone_too():
    queue = scheduler(max_size=1, depth=2, policy="drop_oldest")
    arrive(queue, "a", at_ns=1)
    single = alone(queue, "single", at_ns=0)
    assert ask(queue).items == [single]
