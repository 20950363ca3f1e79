"""Does a delay that is planted in one stage appear in that stage of the exported row, and in no other?

The server's own code runs in virtual time: front, pipeline, worker, lane and ledger are real, only
the model and the device are scripted. Every step takes the time that the script says, and nothing
else takes any.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from types import SimpleNamespace

import orjson
import pandas
import pyarrow
import pytest

from perfkit import fields
from perfkit.clock import ManualClock
from perfkit.measuring.analysis.ledger import stage_table
from perfkit.measuring.analysis.rundata import RunData
from perfkit.measuring.analysis.validity.stamps import check_clock_order, check_stamps_present
from perfkit.measuring.joining import batch_table, request_table
from perfkit.records import STAGE_ENDS, STAGES, EndState
from perfkit.serving.devices.cpu import CpuEvent
from perfkit.serving.devices.lane import Lane
from perfkit.serving.instrument import columns
from perfkit.serving.instrument.gauge import InFlightGauge
from perfkit.serving.server.connection import Request
from perfkit.serving.server.elsewhere.batch_work import Batches
from perfkit.serving.server.elsewhere.batches import RemoteStation
from perfkit.serving.server.elsewhere.stage_work import Stages
from perfkit.serving.server.histogram import BatchSizes, Histogram
from perfkit.serving.server.ledger_export import export
from perfkit.serving.server.model import Collated
from perfkit.serving.server.pipeline import Pipeline
from perfkit.serving.server.plain import PlainCall
from perfkit.serving.server.plant import Books, Plant
from perfkit.serving.server.pool import Duty
from perfkit.serving.server.predict import Prediction
from perfkit.serving.server.replicas import build
from perfkit.serving.server.station import Station
from perfkit.settings.queueing import BatchSettings
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings
from perfkit.settings.workers import StageSettings

MS = 1_000_000
PLANTED_NS = 5 * MS
# Different in every stage, so that two swapped stamps cannot hide behind equal times.
BASE_NS = {stage: (100 + 7 * index) * 1_000 for index, stage in enumerate(STAGES)}
PAYLOAD, REQUEST_ID = [1, 2, 3], 77
WEIGHTS = [SimpleNamespace(nbytes=8)]


class JumpingClock(ManualClock):
    """To wait for an instant is to be there: one thread plays all parts."""

    def wait(self, condition, until_ns):
        self.advance(until_ns - self.now_ns())


class Script:
    """How long each step takes: `spend` lets that much time pass, on the clock that everything stamps from."""

    def __init__(self, durations):
        self.clock = JumpingClock(start_ns=10_000 * MS)
        self.durations = durations

    def spend(self, stage):
        self.clock.advance(self.durations[stage])


class ScriptedModel:
    payloads = None

    def __init__(self, script, splits_slowly):
        self._script = script
        self.splits_slowly = splits_slowly

    def weights(self):
        return WEIGHTS

    def preprocess(self, payload):
        self._script.spend("preprocess")
        return payload

    def collate(self, items):
        self._script.spend("collate")
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items), nbytes=8)

    def predict(self, inputs):
        self._script.spend("compute")
        return inputs

    def split(self, outputs, size):
        if self.splits_slowly:
            self._script.spend("postprocess_wait")
        return outputs

    def postprocess(self, output):
        self._script.spend("postprocess")
        return output

    def example(self):
        return None


class ScriptedDevice:
    """Copies and computes when the script says so; the host wakes after its wake lag."""

    name, is_simulated, has_copies = "scripted", False, True

    def __init__(self, script):
        self._script = script
        self.clock = script.clock

    def loading(self):
        return contextlib.nullcontext()

    def enter_worker(self, intra_op_threads):
        pass

    def leave_worker(self):
        pass

    def effective_threads(self):
        return 1

    def stream(self, priority=0):
        return SimpleNamespace()

    def event(self, is_awaited=False):
        return CpuEvent()

    def buffer(self, nbytes, is_pinned):
        return SimpleNamespace(nbytes=nbytes)

    _last = None

    def free(self, buffer):
        pass

    def wait(self, stream, event):
        pass

    def instant_ns(self, event):
        return event.at_ns

    def copy_in(self, data, nbytes, stream, span, staging):
        before, during = (None, "model_load") if data == WEIGHTS else ("copy_wait", "h2d")
        self._timed(before, during, span, lambda: None)
        return data

    def run(self, call, inputs, stream, span):
        return self._timed("compute_wait", None, span, lambda: call(inputs))

    def copy_out(self, outputs, stream, span):
        self._timed(None, "d2h", span, lambda: None)
        self._last = span.ended
        return outputs

    def synchronize(self, event):
        if event is self._last:
            self._script.spend("wake_lag")

    def open_lane(self, worker, intra_op_threads, priority=0):
        return Lane(self, worker, intra_op_threads, priority)

    def _timed(self, before, during, span, call):
        if before:
            self._script.spend(before)
        span.started.at_ns = self.clock.now_ns()
        result = call()
        if during:
            self._script.spend(during)
        span.ended.at_ns = self.clock.now_ns()
        return result


class SlowHeaders(dict):
    """Headers at which the parsing of a request takes its time."""

    def __init__(self, script, values):
        super().__init__(values)
        self._script = script

    def get(self, name, default=None):
        if name == b"content-type":
            self._script.spend("parse")
        return super().get(name, default)


class Held:
    """A pool or an outbox that keeps what is put until the test takes it up."""

    def __init__(self, name="", threads=0, duty=None, device=None, deaths=None):
        self.works = []
        self._duty = duty

    @classmethod
    def of_outposts(cls, outposts, apply, give_up):
        return cls(duty=Duty(apply=functools.partial(apply, outposts[0]), give_up=give_up))

    def put(self, work):
        self.works.append(work)

    def take_up(self):
        self._duty.apply(self.works.pop())


class HeldThread:
    """A thread of a crew that does its work when the test takes it up."""

    made = ()

    def __init__(self, target, args=(), **_):
        self.ident = None
        self._work = (target, args)

    def start(self):
        HeldThread.made = [self]

    def take_up(self):
        target, args = self._work
        target(*args)


HELD = {"Thread": HeldThread}


class VirtualOutpost:
    """A child process in virtual time: its own code, and ways to and fro that take what the script says."""

    def __init__(self, name, script, work):
        self._name, self._script, self._work = name, script, work
        work._now_ns = script.clock.now_ns

    def start(self):
        pass

    def await_child(self):
        pass

    def ask(self, message):
        self._script.spend(f"to_{self._name}")
        reply = self._work.answer(message)
        self._script.spend(f"from_{self._name}")
        return reply


class TakingClient:
    """A connection whose client is there."""

    is_gone = False
    arrived_ns = 0

    def answer(self, reply, *, closes):
        self.reply = reply
        return 0


POOLED = ServerSettings(
    model="noop",
    preprocess=StageSettings(placement="threads"),
    postprocess=StageSettings(placement="threads"),
    batch=BatchSettings(max_size=8),
    ledger=LedgerSettings(capacity=1024),
)
APART = fields.replace(POOLED, {"preprocess.placement": "processes", "postprocess.placement": "processes"})
INLINE = ServerSettings(model="noop", ledger=LedgerSettings(capacity=1024))
PER_REQUEST = fields.replace(INLINE, {"concurrency.model": "thread_per_request"})
ELASTIC = fields.replace(INLINE, {"concurrency.model": "elastic"})
CARRY = ServerSettings(model="noop", topology="carry", ledger=LedgerSettings(capacity=1024))
SETTINGS = {
    "pooled": POOLED,
    "apart": APART,
    "all apart": fields.replace(APART, {"concurrency.model": "processes"}),
    "inline": INLINE,
    "carry": CARRY,
    "serial": fields.replace(INLINE, {"concurrency.model": "serial"}),
    "thread_per_request": PER_REQUEST,
    "elastic, own thread": ELASTIC,
    "elastic, queued": fields.replace(ELASTIC, {"elastic.core": 0}),
    "asyncio": fields.replace(INLINE, {"concurrency.model": "asyncio"}),
    "replica": fields.replace(INLINE, {"replicas": 2}),
    "resident": fields.replace(INLINE, {"replicas": 2, "resident.models": 1}),
}
# A worker that does everything itself queues and gathers nothing after preprocess; the wait for the busy worker lies
# before it, and is shown as what it is. Who gets a thread of its own waits for nobody: only for that thread; and who is
# handed from a coroutine to an executor waits for that.
OWN_THREAD = ("thread_per_request", "elastic, own thread", "asyncio")
POOLS = ("pooled", "apart", "all apart")
WAYS = {name: (f"to_{name}", f"from_{name}") for name in ("preprocess", "model", "postprocess")}
STAYING = (*WAYS["preprocess"], *WAYS["model"], *WAYS["postprocess"], "model_load")
ABSENT = {kind: STAYING if kind in POOLS else ("queue_wait", "batch_wait", *STAYING) for kind in SETTINGS}
ABSENT |= {"apart": (*WAYS["model"], "model_load"), "all apart": ("model_load",)}
ABSENT["resident"] = tuple(stage for stage in ABSENT["resident"] if stage != "model_load")
SHOWN_AS = {kind: {} if kind in POOLS or kind in OWN_THREAD else {"preprocess_wait": "queue_wait"} for kind in SETTINGS}


class Laboratory:
    """The server's parts on one thread, and one request that is taken through them."""

    def __init__(self, settings, durations, monkeypatch):
        self.script = script = Script(durations)
        self.clock = script.clock
        self.is_pooled = settings.preprocess.placement != "inline"
        device, model = ScriptedDevice(script), ScriptedModel(script, splits_slowly=not self.is_pooled)
        monkeypatch.setattr("perfkit.serving.server.pipeline.Pool", Held)
        monkeypatch.setattr("perfkit.serving.server.pipeline.ProcessPool", Held.of_outposts)
        monkeypatch.setattr(
            "perfkit.serving.server.pipeline.outposts",
            lambda name, *_: [VirtualOutpost(name, script, Stages(model, stamps=True))],
        )
        monkeypatch.setattr("perfkit.serving.server.job.orjson", self)
        monkeypatch.setattr("perfkit.serving.server.crews.roster.threading", SimpleNamespace(**vars(threading) | HELD))
        HeldThread.made = ()
        window_ns = durations["queue_wait"] + durations["batch_wait"]
        if self.is_pooled:
            settings = fields.replace(settings, {"batch.max_delay_s": window_ns / 1e9})
        self.books = Books(settings.ledger)
        self.books.requests.now_ns = self.books.batches.now_ns = self.clock.now_ns
        self.books.requests.clock = self.clock
        self.outbox = Held()
        plant = Plant(model=model, device=device, outbox=self.outbox, books=self.books, clock=self.clock)
        self.pipeline = build(settings, plant)
        if settings.resident.models is not None:
            residents = self.pipeline._residents
            residents.open()
            with residents.holding(1):
                pass  # the copy of the replica that will get the request has to make room
        self.parts = self.pipeline if isinstance(self.pipeline, Pipeline) else self.pipeline._pipelines[0]
        bench = self.parts._bench(self.parts._by_lane[0].dispatcher)
        if settings.concurrency.model == "processes":
            batches = Batches(model, model.collate, device.open_lane("child", 1), stamps=True)
            self.station = RemoteStation(bench, VirtualOutpost("model", script, batches))
        else:
            self.station = Station("model-0", bench)
        self.hands_over = settings.concurrency.model == "asyncio"
        self.service = SimpleNamespace(
            settings=settings,
            books=self.books,
            clock=self.clock,
            pipeline=self.pipeline,
            is_ready=True,
            accepted=0,
            gauge=InFlightGauge(self.clock.now_ns()),
            latency=Histogram(),
            slow_log=None,
            batch_sizes=BatchSizes(),
            ended=[0] * len(EndState),
            answer_ids=itertools.count(1),
        )

    OPT_SERIALIZE_NUMPY = orjson.OPT_SERIALIZE_NUMPY

    def dumps(self, answer, option):
        """Stands in for orjson where the answer is serialised."""
        self.script.spend("serialize")
        return orjson.dumps(answer, option=option)

    def serve_one(self):
        """The client's sample of one request, after the whole way."""
        spend, clock = self.script.spend, self.clock
        sample = {"request_id": REQUEST_ID, "payload": 0, "scheduled_ns": clock.now_ns()}
        spend("send")
        sample["sent_ns"] = clock.now_ns()
        spend("accept")
        client = TakingClient()
        headers = SlowHeaders(self.script, {b"perfkit-id": b"%d" % REQUEST_ID})
        body = orjson.dumps({"input": PAYLOAD})
        request = Request(client, b"POST", b"/predict", headers, body, clock.now_ns(), True)
        Prediction(self.service, request).begin(PlainCall)
        self._through_the_pipeline()
        spend("reply")
        for job in self.outbox.works.pop():
            job.receiver.job_done(job)
        spend("receive")
        assert client.reply.startswith(b"HTTP/1.1 200 OK")
        assert client.reply.endswith(b'"output":[1,2,3]}')
        return sample | {
            "received_ns": clock.now_ns(),
            "status": 200,
            "outcome": int(EndState.OK),
            "bytes_sent": len(body),
            "bytes_received": len(client.reply),
        }

    def _through_the_pipeline(self):
        spend, pipeline = self.script.spend, self.parts
        dispatcher = pipeline._by_lane[0].dispatcher
        if self.hands_over:
            taken = dispatcher.look(SimpleNamespace(), self.clock.now_ns())
            spend("preprocess_wait")
            self.station.serve(taken)
            return
        spend("preprocess_wait")
        if self.is_pooled:
            pipeline._before.take_up()
            spend("queue_wait")
        if HeldThread.made:
            dispatcher.close()  # else the thread would stay for more
            HeldThread.made[0].take_up()
            return
        self.station.serve(dispatcher.take(dispatcher.new_seat()))
        if self.is_pooled:
            spend("postprocess_wait")
            pipeline._after.take_up()

    def rows(self, sample):
        """The request's row as a run's tables hold it, from the bytes that the control port gives out."""
        batches = batch_table(_read(self.books.batches), 0)
        columns_of = {name: [value] for name, value in sample.items()}
        return request_table(columns_of, _read(self.books.requests), batches, 0)


def _read(ledger):
    return pyarrow.ipc.open_stream(export(ledger, 0)).read_all()


def serve(settings, durations, monkeypatch):
    laboratory = Laboratory(settings, durations, monkeypatch)
    return laboratory.rows(laboratory.serve_one())


def stage_times_ns(row):
    """Nanoseconds by stage; a stage that did not happen took none."""
    return {name: round(seconds * 1e9) for name, seconds in stage_table(row).iloc[0].fillna(0.0).items()}


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_stage_takes_exactly_what_the_script_says(kind, monkeypatch):
    times_ns = stage_times_ns(serve(SETTINGS[kind], BASE_NS, monkeypatch))
    expected = BASE_NS | dict.fromkeys(ABSENT[kind], 0)
    for stage, shown in SHOWN_AS[kind].items():
        expected |= {shown: expected[stage], stage: 0}
    assert times_ns == expected | {"total": sum(expected.values())}


@pytest.mark.parametrize(
    ("kind", "stage"), [(kind, stage) for kind in SETTINGS for stage in STAGES if stage not in ABSENT[kind]]
)
def test_a_delay_in_one_stage_moves_that_stage_and_only_that_one(kind, stage, monkeypatch):
    before = stage_times_ns(serve(SETTINGS[kind], BASE_NS, monkeypatch))
    after = stage_times_ns(serve(SETTINGS[kind], BASE_NS | {stage: BASE_NS[stage] + PLANTED_NS}, monkeypatch))
    moved = {name: after[name] - before[name] for name in before if after[name] != before[name]}
    assert moved == {SHOWN_AS[kind].get(stage, stage): PLANTED_NS, "total": PLANTED_NS}


def test_the_preprocess_of_its_mates_is_batch_wait_for_the_request_that_joined_first(monkeypatch):
    laboratory = Laboratory(fields.replace(INLINE, {"batch.max_size": 2}), BASE_NS, monkeypatch)
    for _ in range(2):
        request = Request(TakingClient(), b"POST", b"/predict", {}, b'{"input":1}', laboratory.clock.now_ns(), True)
        Prediction(laboratory.service, request).begin(PlainCall)
    laboratory._through_the_pipeline()
    for job in laboratory.outbox.works.pop():
        job.receiver.job_done(job)
    requests, (batch,) = _read(laboratory.books.requests).to_pylist(), _read(laboratory.books.batches).to_pylist()
    waits_ns = [batch["batch_sealed_ns"] - row["batch_joined_ns"] for row in requests]
    assert (waits_ns, batch["size"]) == ([BASE_NS["preprocess"], 0], 2)


def _passes(rows, check):
    """What a self-test says about a run that consists of these rows."""
    run = RunData(
        requests=rows,
        batches=pandas.DataFrame(),
        series=pandas.DataFrame(),
        rounds=[],
        gauges=[],
        counters=[],
        generator_reports=[],
        load={},
        settings=None,
        simulated=True,
        usable_cores=1,
        profiled=False,
        started_ns=0,
        ended_ns=0,
    )
    return check(run).passed


BATCH_STAMPS = ["B_SEALED", "B_MODEL_REACHED", "B_COLLATED", "B_WOKEN", "B_MODEL_RETURNED"]
STAMPS = [name.upper() for name in columns.REQUEST_INSTANTS] + BATCH_STAMPS
STAMPED = {
    "pooled": [name for name in STAMPS if not name.endswith(("_REACHED", "_RETURNED"))],
    "all apart": STAMPS,
}


@pytest.mark.parametrize(("kind", "stamp"), [(kind, stamp) for kind in STAMPED for stamp in STAMPED[kind]])
def test_a_dropped_stamp_is_missing_in_the_row_and_fails_the_run(kind, stamp, monkeypatch):
    intact = serve(SETTINGS[kind], BASE_NS, monkeypatch)
    elsewhere = "B_CLAMPED" if stamp.startswith("B_") else "END_STATE"  # cells that are written later
    monkeypatch.setattr(columns, stamp, getattr(columns, elsewhere))
    dropped = serve(SETTINGS[kind], BASE_NS, monkeypatch)
    assert _passes(intact, check_stamps_present) is True
    assert _passes(pandas.concat([intact, dropped]), check_stamps_present) is False


def _neighbours(kind):
    """Pairs of boundaries that follow one another in one book."""
    boundaries = [name for name in STAMPED[kind] if name.startswith("B_") or name.lower() in STAGE_ENDS.values()]
    return [(kind, *pair) for pair in itertools.pairwise(boundaries) if pair != ("REPLIED", "B_SEALED")]


@pytest.mark.parametrize(("kind", "first", "second"), [pair for kind in STAMPED for pair in _neighbours(kind)])
def test_two_swapped_stamps_break_the_order_and_fail_the_run(kind, first, second, monkeypatch):
    assert _passes(serve(SETTINGS[kind], BASE_NS, monkeypatch), check_clock_order) is True
    old = getattr(columns, first), getattr(columns, second)
    monkeypatch.setattr(columns, first, old[1])
    monkeypatch.setattr(columns, second, old[0])
    assert _passes(serve(SETTINGS[kind], BASE_NS, monkeypatch), check_clock_order) is False


def test_the_server_timing_header_tells_the_same_stages(monkeypatch):
    laboratory = Laboratory(fields.replace(POOLED, {"http.server_timing": True}), BASE_NS, monkeypatch)
    replies = []
    monkeypatch.setattr(TakingClient, "answer", lambda self, reply, closes: replies.append(reply), raising=True)
    request = Request(
        TakingClient(),
        b"POST",
        b"/predict",
        SlowHeaders(laboratory.script, {}),
        b'{"input":1}',
        laboratory.clock.now_ns(),
        True,
    )
    Prediction(laboratory.service, request).begin(PlainCall)
    laboratory._through_the_pipeline()
    for job in laboratory.outbox.works.pop():
        job.receiver.job_done(job)
    (line,) = [line for line in replies[0].split(b"\r\n") if line.startswith(b"server-timing: ")]
    shown = dict(entry.split(";dur=") for entry in line.decode().removeprefix("server-timing: ").split(", "))
    told = [stage for stage in STAGES[STAGES.index("parse") : STAGES.index("serialize")] if stage not in STAYING]
    assert shown == {stage: f"{BASE_NS[stage] / 1e6:.3f}" for stage in told}
