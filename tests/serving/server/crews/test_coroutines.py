"""Do coroutines take from the queue and leave the blocking call to threads, no more at once than those?"""

from __future__ import annotations

import threading

ASYNCIO = {"concurrency.model": "asyncio"}


def test_as_many_calls_run_at_once_as_there_are_workers_and_the_rest_queues(open_shop, eventually, finished):
    shop = open_shop(**ASYNCIO, workers=2)
    for number in range(1, 6):
        shop.ask(number)
    eventually(lambda: len(shop.model.batches) == 2)
    assert shop.pipeline.queued == 3
    names = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("model-"))
    assert names == ["model-0", "model-1", "model-loop"]
    shop.model.gate.set()
    eventually(lambda: len(finished.jobs) == 5)


def test_a_window_gathers_a_batch_for_a_coroutine_too(open_shop, eventually, finished):
    shop = open_shop(**ASYNCIO, workers=2, **{"batch.max_size": 3, "batch.max_delay_s": 60.0})
    shop.model.gate.set()
    for number in (1, 2, 3):
        shop.ask(number)
    eventually(lambda: len(finished.jobs) == 3)
    assert shop.model.batches == [[1, 2, 3]]


def test_a_short_window_closes_by_itself(open_shop, eventually, finished):
    shop = open_shop(**ASYNCIO, **{"batch.max_size": 3, "batch.max_delay_s": 0.002})
    shop.model.gate.set()
    shop.ask(1)
    eventually(lambda: len(finished.jobs) == 1)
