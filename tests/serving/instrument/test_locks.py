"""Do locks, conditions and queues that count behave like the plain ones, and count right?"""

import queue
import statistics
import sys
import threading
import timeit

import pytest

from perfkit.clock import ManualClock
from perfkit.serving.instrument.locks import (
    MeasuredCondition,
    MeasuredLock,
    MeasuredQueue,
    QueueUse,
    SiteUse,
    summarise,
)

SECOND_NS = 1_000_000_000


def short(use):
    """A use without the file and line of its site."""
    return use.site.split(" (")[0].rpartition(".")[2], use.acquired_count, use.contended_count


def test_holds_are_counted_by_the_function_that_acquires():
    clock = ManualClock()
    lock = MeasuredLock("predict", clock)

    def serve(seconds):
        with lock:
            clock.advance(seconds * SECOND_NS)

    serve(1)
    serve(3)
    (use,) = lock.summary()
    assert use == SiteUse(
        lock="predict",
        site=use.site,
        acquired_count=2,
        contended_count=0,
        wait_s=0.0,
        longest_wait_s=0.0,
        hold_s=4.0,
        longest_hold_s=3.0,
        idle_count=0,
        idle_s=0.0,
    )
    assert use.site.startswith("test_holds_are_counted_by_the_function_that_acquires.<locals>.serve (test_locks.py:")


def test_a_wait_is_counted_at_the_site_that_waited():
    clock = ManualClock()
    lock = MeasuredLock("predict", clock)
    is_asking = threading.Event()

    def wait_for_it():
        is_asking.set()
        with lock:
            pass

    lock.acquire()
    thread = threading.Thread(target=wait_for_it)
    thread.start()
    is_asking.wait()
    while not has_asked(thread):
        pass
    clock.advance(2 * SECOND_NS)
    lock.release()
    thread.join()
    waiter, holder = lock.summary()
    assert (short(waiter), waiter.wait_s, waiter.longest_wait_s, waiter.hold_s) == (
        ("wait_for_it", 1, 1),
        2.0,
        2.0,
        0.0,
    )
    assert (holder.acquired_count, holder.wait_s, holder.hold_s) == (1, 0.0, 2.0)


def has_asked(thread):
    """Whether a thread blocks inside the lock: its innermost frame has its question's time already."""
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code.co_name == "acquire" and "asked_ns" in frame.f_locals


def test_an_acquire_that_gives_up_leaves_no_trace():
    lock = MeasuredLock("predict")
    assert lock.acquire()
    assert not lock.acquire(blocking=False)
    assert not lock.acquire(timeout=0.001)
    assert lock.locked()
    lock.release()
    assert [use.acquired_count for use in lock.summary()] == [1]


def test_a_lock_that_nobody_holds_cannot_be_released():
    with pytest.raises(RuntimeError):
        MeasuredLock("predict").release()


def test_counts_are_exact_under_contention():
    lock, total = MeasuredLock("predict"), 0

    def add():
        nonlocal total
        for _ in range(2_000):
            with lock:
                total += 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (use,) = lock.summary()
    assert total == use.acquired_count == 8_000


def test_waiting_for_a_notification_is_idle_and_no_wait_for_the_lock():
    clock = ManualClock()
    lock = MeasuredLock("inbox", clock)
    condition = MeasuredCondition(lock)
    is_waiting = threading.Event()

    def take():
        with condition:
            is_waiting.set()
            condition.wait()

    thread = threading.Thread(target=take)
    thread.start()
    is_waiting.wait()
    with condition:  # taken only once the other thread waits, and has given the lock back
        clock.advance(5 * SECOND_NS)
        condition.notify()
    thread.join()
    by_site = {short(use)[0]: use for use in lock.summary()}
    assert (by_site["take"].idle_count, by_site["take"].idle_s, by_site["take"].wait_s) == (1, 5.0, 0.0)
    assert by_site["test_waiting_for_a_notification_is_idle_and_no_wait_for_the_lock"].idle_count == 0


def test_a_queue_keeps_order_and_limits_and_times_its_items():
    clock = ManualClock()
    inbox = MeasuredQueue("inbox", maxsize=2, clock=clock)
    inbox.put("first")
    clock.advance(1 * SECOND_NS)
    inbox.put("second")
    with pytest.raises(queue.Full):
        inbox.put_nowait("third")
    clock.advance(2 * SECOND_NS)
    assert [inbox.get(), inbox.get()] == ["first", "second"]
    with pytest.raises(queue.Empty):
        inbox.get_nowait()
    assert inbox.item_summary() == QueueUse(queue="inbox", item_count=2, queued_s=5.0, longest_queued_s=3.0)


def test_a_getter_that_waits_for_items_is_idle_at_its_own_site():
    inbox = MeasuredQueue("inbox")

    def work():
        return [inbox.get() for _ in range(3)]

    def feed():
        for item in range(3):
            inbox.put(item)

    thread = threading.Thread(target=work)
    thread.start()
    feed()
    thread.join()
    sites = {short(use)[0] for use in inbox.summary()}
    assert sites <= {"work", "<listcomp>", "feed"}
    assert "feed" in sites
    assert inbox.item_summary().item_count == 3


def test_several_locks_are_ranked_by_the_time_waited_and_then_held():
    clock = ManualClock()
    short_lock, long_lock = MeasuredLock("a", clock), MeasuredLock("b", clock)
    for lock, seconds in ((short_lock, 1), (long_lock, 2)):
        with lock:
            clock.advance(seconds * SECOND_NS)
    assert [use.lock for use in summarise([short_lock, long_lock])] == ["b", "a"]


@pytest.mark.bench
def test_counting_adds_at_most_a_microsecond():
    plain, measured = threading.Lock(), MeasuredLock("bench")

    def use(lock, count=50_000):
        for _ in range(count):
            with lock:
                pass

    def cost_s(lock):
        return timeit.timeit(lambda: use(lock), number=1) / 50_000

    added = statistics.median(cost_s(measured) - cost_s(plain) for _ in range(7))
    assert added <= 1e-6
