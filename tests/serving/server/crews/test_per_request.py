"""Does each request get a thread of its own, no more at once than the queue is deep, and none stays?"""

from __future__ import annotations

import threading

from perfkit.records import EndState

PER_REQUEST = {"concurrency.model": "thread_per_request"}


def test_each_request_has_a_thread_with_a_name_and_it_ends_with_the_answer(open_shop, eventually, finished):
    shop = open_shop(**PER_REQUEST)
    jobs = [shop.ask(number)[0][0] for number in (1, 2, 3)]
    eventually(lambda: len(shop.model.batches) == 3)
    names = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("model-"))
    assert (names, shop.pipeline.queued) == (["model-0", "model-1", "model-2"], 0)
    shop.model.gate.set()
    eventually(lambda: shop.pipeline.headcount().current == 0)
    assert {(job.end_state, job.output) for job in jobs} == {(EndState.OK, b"%d" % (2 * n)) for n in (1, 2, 3)}
    found = shop.pipeline.headcount()
    assert (found.peak, found.started) == (3, 3)


def test_names_are_used_again(open_shop, eventually, finished):
    shop = open_shop(**PER_REQUEST)
    shop.model.gate.set()
    for number in range(1, 20):
        shop.ask(number)
        eventually(lambda: shop.pipeline.headcount().current == 0)
    found = shop.pipeline.headcount()
    assert (found.peak, found.started, len(finished.jobs)) == (1, 19, 19)


def test_the_depth_of_the_queue_bounds_the_threads(open_shop, eventually):
    shop = open_shop(**PER_REQUEST, **{"queue.depth": 3})
    for number in (1, 2, 3):
        assert shop.ask(number)[1] is None
    _, rejected = shop.ask(4)
    assert (rejected.reason, shop.pipeline.headcount().current) == ("queue_full", 3)
    shop.model.gate.set()
    eventually(lambda: shop.pipeline.admitted == 0)
    assert shop.ask(5)[1] is None


def test_who_waits_at_the_door_gets_a_thread_when_another_request_has_ended(open_shop, eventually, finished):
    class Loop:
        put = finished.put

        def call_at(self, at_ns, call):
            return None

    finished.call_at = Loop().call_at
    shop = open_shop(**PER_REQUEST, **{"queue.depth": 2, "queue.policy": "block", "queue.block_s": 60.0})
    jobs = [shop.ask(number)[0][0] for number in range(1, 7)]
    assert shop.pipeline.headcount().current == 2
    shop.model.gate.set()
    eventually(lambda: len(finished.jobs) == 6)
    assert {job.end_state for job in jobs} == {EndState.OK}


def test_when_the_system_starts_no_more_threads_the_request_fails_and_its_place_is_free(open_shop, monkeypatch):
    shop = open_shop(**PER_REQUEST, **{"queue.depth": 1})
    shop.model.gate.set()

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        (job,), _ = shop.ask(1)
    assert (job.end_state, job.code, shop.pipeline.headcount().current) == (EndState.FAILED, "no_thread", 0)
    assert shop.ask(2)[1] is None
