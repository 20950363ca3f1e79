"""Do real threads follow Java's rule: when they start, what they serve first, and when they leave?"""

from __future__ import annotations

import threading

import pytest

from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.crews.crew import Headcount

ELASTIC = {"concurrency.model": "elastic", "elastic.keep_alive_s": 0.0}


def counts(shop):
    found = shop.pipeline.headcount()
    return found.current, found.peak, found.started


def ended(jobs):
    return [(job.end_state, job.output) for job in jobs]


def test_a_request_below_the_core_starts_a_thread_even_when_others_are_idle(open_shop, eventually, finished):
    shop = open_shop(**ELASTIC | {"elastic.core": 3})
    shop.model.gate.set()
    for number in range(1, 6):
        shop.ask(number)
        eventually(lambda number=number: len(finished.jobs) == number)
    assert counts(shop) == (3, 3, 3)


def test_it_grows_past_its_core_only_when_the_queue_is_full_and_then_up_to_max(open_shop, eventually):
    shop = open_shop(**ELASTIC | {"elastic.core": 2, "elastic.max": 4, "queue.depth": 3})
    steps, jobs = [], []
    for number in range(1, 8):
        asked, rejected = shop.ask(number)
        assert rejected is None
        jobs += asked
        steps.append((shop.pipeline.headcount().current, shop.pipeline.queued))
    assert steps == [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (3, 3), (4, 3)]
    _, rejected = shop.ask(8)
    assert rejected.reason == "queue_full"
    eventually(lambda: sorted(shop.model.batches) == [[1], [2], [6], [7]])  # not those that came before and queue
    shop.model.gate.set()
    eventually(lambda: counts(shop) == (2, 4, 4))
    assert ended(jobs) == [(EndState.OK, b"%d" % (2 * number)) for number in range(1, 8)]


def test_a_deep_queue_keeps_it_at_its_core(open_shop, eventually):
    """Seed 001's first setting in small: the queue takes what a larger maximum was meant for."""
    shop = open_shop(**ELASTIC | {"elastic.core": 2, "elastic.max": 40, "queue.depth": 1000})
    for number in range(1, 101):
        shop.ask(number)
    assert (counts(shop), shop.pipeline.queued) == ((2, 2, 2), 98)


def test_its_threads_take_batches_from_the_queue(open_shop, eventually):
    shop = open_shop(**ELASTIC | {"elastic.core": 1, "elastic.max": 1, "batch.max_size": 4})
    for number in range(1, 10):
        shop.ask(number)
    shop.model.gate.set()
    eventually(lambda: len(shop.model.batches) == 3)
    assert shop.model.batches == [[1], [2, 3, 4, 5], [6, 7, 8, 9]]


def test_the_inputs_of_one_request_come_in_together_or_not_at_all(open_shop):
    shop = open_shop(**ELASTIC | {"elastic.core": 1, "elastic.max": 2, "queue.depth": 2})
    _, rejected = shop.ask(1, 2, 3, 4, 5)
    assert (rejected.reason, counts(shop), shop.pipeline.admitted) == ("queue_full", (0, 0, 0), 0)
    _, rejected = shop.ask(1, 2, 3, 4)
    assert (rejected, counts(shop), shop.pipeline.admitted) == (None, (2, 2, 2), 2)


@pytest.mark.parametrize("policy", ["caller_runs", "discard", "drop_oldest"])
def test_beyond_max_and_a_full_queue_its_policy_decides(open_shop, finished, policy):
    limits = {"elastic.core": 1, "elastic.max": 2, "queue.depth": 1, "queue.policy": policy}
    shop = open_shop(**ELASTIC | limits)
    jobs = [shop.ask(number)[0][0] for number in (1, 2, 3)]
    assert counts(shop) == (2, 2, 2)
    if policy == "caller_runs":
        shop.model.gate.set()  # else the caller would wait for it, as a caller does
    (extra,), rejected = shop.ask(4)
    if policy == "discard":
        assert rejected.reason == "discarded"
    elif policy == "drop_oldest":
        assert (jobs[1].end_state, jobs[1].code) == (EndState.REJECTED, "dropped"), "the one that was queued"
    else:
        assert (extra.end_state, extra.output) == (EndState.OK, b"8")
    assert counts(shop)[2] == 2


def test_the_queue_of_a_lane_is_full_for_that_lane_alone(open_shop):
    shop = open_shop(**ELASTIC | {"elastic.core": 1, "elastic.max": 2, "lanes.fast.depth": 1})
    fast = shop.pipeline.lanes[b"fast"].number
    for number in (1, 2):
        assert shop.ask(number, lane=fast)[1] is None
    assert (counts(shop), shop.pipeline.queued) == ((1, 1, 1), 1)
    assert (shop.ask(3)[1], counts(shop), shop.pipeline.queued) == (None, (1, 1, 1), 2), "the others' queue has room"
    assert (shop.ask(4, lane=fast)[1], counts(shop), shop.pipeline.queued) == (None, (2, 2, 2), 2)
    assert shop.ask(5, lane=fast)[1].reason == "queue_full"


def test_without_a_core_the_first_request_queues_and_still_finds_a_thread(open_shop, eventually, finished):
    shop = open_shop(**ELASTIC | {"elastic.core": 0})
    shop.model.gate.set()
    for number in range(1, 30):
        shop.ask(number)
        eventually(lambda number=number: len(finished.jobs) == number)
    eventually(lambda: shop.pipeline.headcount().current == 0)
    assert shop.pipeline.headcount().peak == 1


class LanesRunOut(CpuDevice):
    """A device that opens so many lanes and no more."""

    lanes = 1

    def open_lane(self, worker, intra_op_threads=1, priority=0):
        self.lanes -= 1
        if self.lanes < 0:
            raise MemoryError("no lane left")
        return super().open_lane(worker, intra_op_threads, priority)


def test_a_thread_that_gets_no_lane_fails_its_request_and_what_only_it_could_have_served(open_shop, eventually):
    shop = open_shop(device=LanesRunOut(), **ELASTIC | {"elastic.core": 0, "elastic.max": 1})
    jobs = [shop.ask(number)[0][0] for number in (1, 2, 3)]
    eventually(lambda: shop.pipeline.headcount().current == 0 and all(job.end_state for job in jobs))
    assert {(job.end_state, job.code) for job in jobs} == {(EndState.FAILED, "no_thread")}
    assert shop.pipeline.admitted == 0


def test_when_the_system_starts_no_more_threads_the_request_fails_and_nobody_is_counted(open_shop, monkeypatch):
    shop = open_shop(**ELASTIC)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        (job,), _ = shop.ask(1)
    assert (job.end_state, job.code, shop.pipeline.headcount()) == (
        EndState.FAILED,
        "no_thread",
        Headcount(current=0, peak=1, started=1),
    )
