"""Do a pipeline's threads start together, end together, and lose nothing when it closes?"""

from __future__ import annotations

import sys
import threading

import pytest

from perfkit import fields
from perfkit.errors import TargetFailed
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.job import Job
from perfkit.serving.server.pipeline import Pipeline
from perfkit.serving.server.plant import Books, Plant
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings


class Doubling:
    """Doubles numbers; what the tests need beyond that, they put in its place."""

    def predict(self, inputs):
        return [2 * item for item in inputs]

    def example(self):
        return 1


@pytest.fixture
def pipeline_of(finished):
    """Makes pipelines over one outbox."""

    def make(model, **changes):
        settings = fields.replace(ServerSettings(model="x:Y", ledger=LedgerSettings(capacity=1024)), changes)
        plant = Plant(model=complete(model), device=CpuDevice(), outbox=finished, books=Books(settings.ledger))
        return Pipeline(settings, plant), plant.books

    return make


def submit(pipeline, books, payload):
    job = Job(payload, receiver=None, row=books.requests.open(), deadline_ns=0)
    assert pipeline.enter([job]) is None
    return job


def our_threads():
    names = ("model-", "preprocess-", "postprocess-")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(names)]


PLACES = {"preprocess.placement": "threads", "postprocess.placement": "threads", "preprocess.threads": 3}


MODELS = [
    {"concurrency.model": "serial", "workers": 1},
    {"concurrency.model": "thread_per_request"},
    {"concurrency.model": "elastic"},
    {"concurrency.model": "asyncio"},
    {"concurrency.model": "asyncio", "batch.max_size": 4, "batch.max_delay_s": 60.0},
    {"concurrency.model": "asyncio", **PLACES},
    {"concurrency.model": "elastic", "elastic.core": 0, "elastic.keep_alive_s": 0.0, "batch.max_size": 4},
    {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 50, "queue.depth": 2},
]


@pytest.mark.parametrize(
    "changes", [{}, {"batch.max_size": 4, "batch.max_delay_s": 60.0}, PLACES, {"topology": "carry"}, *MODELS]
)
def test_closing_finishes_what_was_submitted_and_ends_every_thread(pipeline_of, finished, changes):
    pipeline, books = pipeline_of(Doubling(), **({"workers": 3} | changes))
    pipeline.start()
    jobs = [submit(pipeline, books, number) for number in range(50)]
    pipeline.close()
    assert [(job.end_state, job.output) for job in jobs] == [(EndState.OK, b"%d" % (2 * n)) for n in range(50)]
    assert sorted(map(id, finished.jobs)) == sorted(map(id, jobs))
    assert (pipeline.admitted, pipeline.queued, our_threads()) == (0, 0, [])


LANED = {
    "lanes.own.workers": 2,
    "lanes.low.priority": 7,
    "queue.policy": "block",
    "queue.depth": 2,
    "queue.block_s": 60.0,
}


@pytest.mark.parametrize("changes", [{}, PLACES, {"batch.max_size": 4, "batch.max_delay_s": 60.0}])
def test_closing_finishes_what_waits_in_any_lane_and_at_any_door(pipeline_of, finished, changes):
    pipeline, books = pipeline_of(Doubling(), **LANED, **changes)
    pipeline.start()
    jobs = []
    for number in range(60):
        job = Job(number, receiver=None, row=books.requests.open(), deadline_ns=0)
        job.lane = number % 3
        assert pipeline.enter([job]) is None
        jobs.append(job)
    pipeline.close()
    assert [(job.end_state, job.output) for job in jobs] == [(EndState.OK, b"%d" % (2 * n)) for n in range(60)]
    assert sorted(map(id, finished.jobs)) == sorted(map(id, jobs))
    assert (pipeline.admitted, pipeline.queued, our_threads()) == (0, 0, [])


def test_threads_are_named_after_what_they_do(pipeline_of):
    pipeline, _ = pipeline_of(Doubling(), workers=2, **PLACES)
    pipeline.start()
    assert sorted(our_threads()) == [
        "model-0",
        "model-1",
        "postprocess-0",
        "preprocess-0",
        "preprocess-1",
        "preprocess-2",
    ]
    pipeline.close()


@pytest.mark.parametrize("failure", [ValueError("no"), SystemExit(3)])
def test_a_worker_that_cannot_start_ends_them_all(pipeline_of, failure):
    calls = []

    class Moody(Doubling):
        def predict(self, inputs):
            calls.append(inputs)
            if len(calls) == 2:
                raise failure
            return super().predict(inputs)

    pipeline, _ = pipeline_of(Moody(), workers=3, **PLACES)
    with pytest.raises(TargetFailed, match=f"^a model worker cannot start: {type(failure).__name__}: "):
        pipeline.start()
    assert our_threads() == []


def test_each_worker_is_warmed_up_with_the_smallest_and_the_largest_batch(pipeline_of):
    sizes = []

    class Watched(Doubling):
        def predict(self, inputs):
            sizes.append((threading.current_thread().name, len(inputs)))
            return super().predict(inputs)

    pipeline, _ = pipeline_of(Watched(), workers=2, **{"batch.max_size": 8})
    pipeline.start()
    pipeline.close()
    assert sorted(sizes) == [("model-0", 1), ("model-0", 8), ("model-1", 1), ("model-1", 8)]


def test_a_model_that_calls_exit_keeps_its_worker(pipeline_of, eventually, finished):
    class Leaving(Doubling):
        def predict(self, inputs):
            if inputs == [13]:
                sys.exit()
            return super().predict(inputs)

    pipeline, books = pipeline_of(Leaving())
    pipeline.start()
    bad, good = submit(pipeline, books, 13), submit(pipeline, books, 1)
    eventually(lambda: len(finished.jobs) == 2)
    assert (bad.end_state, bad.message) == (EndState.FAILED, "the model raised SystemExit in predict: ")
    assert (good.end_state, good.output) == (EndState.OK, b"2")
    pipeline.close()


@pytest.mark.parametrize(("stage", "seen"), [("preprocess", ["preprocess"]), ("predict", ["preprocess", "predict"])])
def test_a_request_whose_client_has_left_goes_no_further_than_where_it_is(
    pipeline_of, finished, eventually, stage, seen
):
    reached, entered, gate = [], threading.Event(), threading.Event()

    class Slow(Doubling):
        def _step(self, name, value):
            reached.append(name)
            if name == stage:
                entered.set()
                gate.wait(20)
            return value

        def preprocess(self, payload):
            return self._step("preprocess", payload)

        def predict(self, inputs):
            return self._step("predict", inputs)

        def postprocess(self, output):
            return self._step("postprocess", output)

        def example(self):
            return None

    pipeline, books = pipeline_of(Slow(), **PLACES)
    pipeline.start()
    job = submit(pipeline, books, 1)
    assert entered.wait(20)
    assert pipeline.cancel(job) is False, "a thread has it"
    gate.set()
    eventually(lambda: finished.jobs)
    pipeline.close()
    assert (finished.jobs, job.end_state, reached) == ([job], EndState.CANCELLED, seen)


def test_a_poisoned_request_costs_few_further_calls(pipeline_of, eventually, finished):
    """At most 2 ceil(log2 B) calls beyond the first per poison."""
    calls = []

    class Watched(Doubling):
        def predict(self, inputs):
            calls.append(len(inputs))
            if -1 in inputs:
                raise ValueError("poison")
            return super().predict(inputs)

        def example(self):
            return None

    pipeline, books = pipeline_of(Watched(), **{"batch.max_size": 16, "batch.max_delay_s": 60.0})
    pipeline.start()
    jobs = [submit(pipeline, books, -1 if number == 5 else number) for number in range(16)]
    eventually(lambda: len(finished.jobs) == 16)
    assert [job.end_state for job in jobs] == [EndState.FAILED if n == 5 else EndState.OK for n in range(16)]
    assert calls[0] == 16
    assert len(calls) - 1 <= 2 * 4
    pipeline.close()
