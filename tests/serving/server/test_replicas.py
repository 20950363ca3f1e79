"""Do replicas share the work over one model, each with its own queue, and keep their count of it?"""

from __future__ import annotations

import itertools
import threading

import pytest

from perfkit.errors import TargetFailed
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice


@pytest.fixture
def two(open_shop):
    """Two replicas of one worker each."""
    return open_shop(replicas=2, workers=1)


def test_each_replica_has_its_own_workers_and_they_share_the_requests(two, eventually, finished):
    jobs = [two.ask(number)[0][0] for number in range(1, 7)]
    eventually(lambda: len(two.model.batches) == 2)
    assert (two.pipeline.loads(), two.pipeline.queued) == ([3, 3], 4)
    names = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("model-"))
    assert names == ["model-0-0", "model-1-0"]
    two.model.gate.set()
    eventually(lambda: len(finished.jobs) == 6)
    assert {(job.end_state, job.output) for job in jobs} == {(EndState.OK, b"%d" % (2 * n)) for n in range(1, 7)}
    assert two.pipeline.loads() == [0, 0]


def test_the_inputs_of_one_request_stay_together_and_the_next_goes_to_the_other(two):
    two.ask(1, 2, 3)
    two.ask(4)
    two.ask(5)
    assert sorted(two.pipeline.loads()) == [2, 3]


def test_each_queue_has_its_own_depth(open_shop, eventually):
    shop = open_shop(replicas=2, workers=1, **{"queue.depth": 1})
    for number in (1, 2):
        shop.ask(number)
    eventually(lambda: shop.pipeline.admitted == 0)
    assert [shop.ask(number)[1] for number in (3, 4)] == [None, None]
    _, rejected = shop.ask(5)
    assert (rejected.reason, shop.pipeline.admitted, sorted(shop.pipeline.loads())) == ("queue_full", 2, [2, 2])


def test_a_request_whose_client_has_left_is_out_of_its_replica(two, eventually):
    jobs = [two.ask(number)[0][0] for number in range(1, 5)]
    eventually(lambda: two.pipeline.queued == 2)
    assert [two.pipeline.cancel(job) for job in jobs] == [False, False, True, True]
    assert two.pipeline.loads() == [1, 1]
    assert all(job.is_gone for job in jobs)


def test_a_request_whose_deadline_has_passed_is_out_of_its_replica(two, eventually):
    jobs = [two.ask(number)[0][0] for number in range(1, 5)]
    eventually(lambda: two.pipeline.queued == 2)
    assert [two.pipeline.expire(job) for job in jobs] == [False, False, True, True]
    assert (two.pipeline.loads(), jobs[3].end_state) == ([1, 1], EndState.EXPIRED)


@pytest.mark.parametrize("model", ["thread_per_request", "elastic", "asyncio"])
def test_any_crew_staffs_a_replica(open_shop, eventually, finished, model):
    shop = open_shop(replicas=3, **{"concurrency.model": model, "elastic.core": 1, "elastic.max": 1})
    shop.model.gate.set()
    for number in range(1, 31):
        shop.ask(number)
    eventually(lambda: len(finished.jobs) == 30)
    assert (shop.pipeline.loads(), shop.pipeline.admitted) == ([0, 0, 0], 0)
    shop.close()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("model-")] == []


def test_when_one_replica_cannot_start_none_runs(open_shop):
    lanes = itertools.count()

    class TwoLanes(CpuDevice):
        def open_lane(self, worker, intra_op_threads=1, priority=0):
            if next(lanes) == 2:
                raise MemoryError("no lane left")
            return super().open_lane(worker, intra_op_threads, priority)

    with pytest.raises(TargetFailed, match=r"^a model worker cannot start: MemoryError: no lane left$"):
        open_shop(device=TwoLanes(), replicas=4, workers=1)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("model-")] == []
