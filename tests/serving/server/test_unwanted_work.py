"""Is a request that nobody wants any more dropped before its next stage, while its batch mates are answered?

The client leaves, or the deadline passes, while the request is in one stage: it must not enter the next one.
"""

from __future__ import annotations

import pytest

from perfkit import fields
from perfkit.clock import ManualClock
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.instrument.columns import BATCH_COLUMNS, REQUEST_COLUMNS
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import Collated
from perfkit.serving.server.pipeline import Pipeline
from perfkit.serving.server.plant import Books, Plant
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings

SECOND = 1_000_000_000
STAGES = ("preprocess", "collate", "predict", "postprocess")
UNWANTED = "unwanted"
INLINE, POOLS = {}, {"preprocess.placement": "threads", "postprocess.placement": "threads"}


class Watched:
    """Echoes; notes which payload was in which stage, and does a deed while the unwanted one is in a certain stage."""

    def __init__(self, stage, deed):
        self.stage, self.deed = stage, deed
        self.seen = []

    def _step(self, stage, value):
        self.seen.append((stage, value))
        if (stage, value) == (self.stage, UNWANTED):
            self.deed()
        return value

    def preprocess(self, payload):
        return self._step("preprocess", payload)

    def collate(self, items):
        inputs = [self._step("collate", item) for item in items]
        return Collated(inputs=inputs, size=len(inputs), units=len(inputs), padded_units=len(inputs))

    def predict(self, inputs):
        return [self._step("predict", item) for item in inputs]

    def postprocess(self, output):
        return self._step("postprocess", output)

    def example(self):
        return None


class Life:
    """A pipeline in which one of three mates becomes unwanted while it is in a stage."""

    def __init__(self, changes, stage, reason, finished):
        clock = ManualClock(start_ns=SECOND)
        settings = fields.replace(ServerSettings(model="x:Y", ledger=LedgerSettings(capacity=1024)), changes)
        self.books = Books(settings.ledger)
        for book in (self.books.requests, self.books.batches):
            book.clock, book.now_ns = clock, clock.now_ns
        self.model = Watched(stage, lambda: clock.advance(100) if reason == "deadline" else self.leave())
        device = CpuDevice(clock=clock)
        plant = Plant(model=complete(self.model), device=device, outbox=finished, books=self.books, clock=clock)
        self.pipeline = Pipeline(settings, plant)
        self.jobs = [self.job(payload, reason) for payload in ("first", UNWANTED, "last")]

    def job(self, payload, reason):
        dies = payload == UNWANTED and reason == "deadline"
        return Job(payload, receiver=None, row=self.books.requests.open(), deadline_ns=dies and SECOND + 100)

    def leave(self):
        self.pipeline.cancel(self.jobs[1])

    def live(self):
        assert self.pipeline.enter(self.jobs) is None
        self.pipeline.start()
        self.pipeline.close()

    def path(self, payload):
        """The stages that a payload entered; collate may have been tried again."""
        return list(dict.fromkeys(stage for stage, seen in self.model.seen if seen == payload))


ENDS = {"deadline": (EndState.EXPIRED, "deadline"), "client": (EndState.CANCELLED, "client_gone")}


@pytest.mark.parametrize("changes", [INLINE, POOLS], ids=["inline", "pools"])
@pytest.mark.parametrize("reason", ENDS)
@pytest.mark.parametrize("stage", STAGES[:-1])
def test_it_goes_no_further_and_its_mates_are_answered(finished, changes, reason, stage):
    life = Life(changes | {"batch.max_size": 3, "batch.max_delay_s": 60.0}, stage, reason, finished)
    life.live()
    first, unwanted, last = life.jobs
    assert life.path(UNWANTED) == list(STAGES[: STAGES.index(stage) + 1])
    assert (unwanted.end_state, unwanted.code) == ENDS[reason]
    assert [life.path(job.payload) for job in (first, last)] == [list(STAGES)] * 2
    assert [(job.end_state, job.output) for job in (first, last)] == [
        (EndState.OK, b'"first"'),
        (EndState.OK, b'"last"'),
    ]
    assert sorted(map(id, finished.jobs)) == sorted(map(id, life.jobs)), "each ended once"
    assert (life.pipeline.admitted, life.pipeline.queued, life.books.batches.in_use) == (0, 0, 0)


def instants(columns, ledger, row):
    return [name for at, name in enumerate(columns, 1) if name.endswith("_ns") and ledger.cells[row + at] >= SECOND]


@pytest.mark.parametrize("reason", ENDS)
def test_the_ledger_keeps_what_it_went_through_and_the_size_of_the_call_that_it_missed(finished, reason):
    life = Life({"batch.max_size": 3, "batch.max_delay_s": 60.0}, "collate", reason, finished)
    life.live()
    assert instants(REQUEST_COLUMNS, life.books.requests, life.jobs[1].row) == [
        "preprocess_queued_ns",
        "preprocess_started_ns",
        "preprocess_ended_ns",
        "model_queued_ns",
        "batch_joined_ns",
    ]
    assert life.books.batches.cells[1 + BATCH_COLUMNS.index("size")] == 2


def test_a_batch_of_which_nothing_is_wanted_when_it_is_collated_is_never_run(finished):
    life = Life({}, "collate", "deadline", finished)
    life.jobs = life.jobs[1:2]
    life.live()
    assert (life.path(UNWANTED), life.jobs[0].end_state) == (["preprocess", "collate"], EndState.EXPIRED)
    assert (life.books.batches.closed, life.books.batches.in_use) == (1, 0)


def test_a_deadline_that_passes_in_the_queue_ends_the_job_there_and_then(finished, new_job):
    life = Life({}, "", "", finished)
    queued = new_job(deadline_ns=SECOND + 5)
    assert life.pipeline.enter([queued]) is None
    assert life.pipeline.expire(queued) is True
    assert (queued.end_state, life.pipeline.admitted) == (EndState.EXPIRED, 0)
    assert life.pipeline.expire(queued) is False, "it is not there any more"


def test_what_would_come_too_late_at_the_pace_that_was_seen_is_shed_before_its_first_stage(finished):
    life = Life({"queue.policy": "shed"}, "predict", "deadline", finished)
    books, clock, model = life.books, life.books.requests.clock, life.model
    life.jobs = [Job(UNWANTED, receiver=None, row=books.requests.open(), deadline_ns=0)]  # 100 ns in predict
    for payload, patience_ns in (("hopeless", 200), ("hopeful", 201)):
        row = books.requests.open()
        life.jobs.append(Job(payload, receiver=None, row=row, deadline_ns=clock.now_ns() + patience_ns))
    life.live()
    _, hopeless, hopeful = life.jobs
    assert (hopeless.end_state, hopeless.code, life.path("hopeless")) == (EndState.REJECTED, "shed", [])
    assert (hopeful.end_state, life.path("hopeful")) == (EndState.OK, list(STAGES))
    assert len(model.seen) == 8
