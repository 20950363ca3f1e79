"""Which requests wait, which leave together, and when? One story a rule."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from perfkit.serving.scheduling.decisions import Idle, Limits, Rejected, Send, WaitUntil
from perfkit.serving.scheduling.scheduler import Scheduler


@dataclass(eq=False)
class Item:
    name: str
    queued_ns: int = 0
    deadline_ns: int = 0

    def __repr__(self):
        return self.name


def scheduler(*, max_size=4, max_delay_ns=0, depth=100):
    return Scheduler(Limits(max_size=max_size, max_delay_ns=max_delay_ns, depth=depth))


def arrive(queue, name, at_ns, deadline_ns=0):
    """An item is admitted and ready for a worker at once."""
    assert queue.admit() is None
    item = Item(name, at_ns, deadline_ns)
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
    assert [queue.admit(), queue.admit()] == [None, None]
    assert queue.admit().reason == "queue_full"
    queue.enqueue(Item("a"))
    assert queue.admit().reason == "queue_full"
    queue.decide(0)
    assert queue.admit() is None
    assert (queue.admitted, queue.queued) == (2, 0)


def test_several_inputs_are_admitted_together_or_not_at_all():
    queue = scheduler(depth=3)
    assert queue.admit(2) is None
    assert queue.admit(2).reason == "queue_full"
    assert queue.admitted == 2


def test_a_withdrawn_request_leaves_room_for_another():
    queue = scheduler(depth=1)
    queue.admit()
    queue.withdraw()
    assert queue.admit() is None


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
    assert queue.admit().reason == "draining"
    assert queue.decide(1) == Send(batch=[a], due_ns=0, expired=[])


def test_retry_after_is_the_time_in_which_the_queue_drains_at_the_present_pace():
    queue = scheduler(max_size=1, depth=11)
    for name in "abcdefghijk":
        arrive(queue, name, at_ns=0)
    for batch in range(6):  # one request every 2 s
        queue.decide(batch * 2_000_000_000)
    assert queue.admit(7) == Rejected(reason="queue_full", retry_after_s=pytest.approx(10.0))


def test_an_idle_pause_is_not_taken_for_a_slow_service():
    queue = scheduler(max_size=1, depth=2)
    arrive(queue, "a", at_ns=1)
    queue.decide(1)
    ten_minutes_ns = 600_000_000_000
    for name in "bc":
        arrive(queue, name, ten_minutes_ns)
    queue.decide(ten_minutes_ns)
    arrive(queue, "d", ten_minutes_ns)
    assert queue.admit() == Rejected(reason="queue_full", retry_after_s=pytest.approx(0.1))
