"""R3: is work whose deadline has passed dropped before the model sees it, and is the client told soon?

Requests with random deadlines of 0 to 200 ms. In virtual time the server's own path from a whole request to its
answer runs on one thread, at 1.5 times what the model can do, and every figure is exact. Over sockets a real process
serves them; its model writes down whom it saw, and its ledger tells when.
Target: 0 expired reach predict; P99 of the overshoot at most one batch + 10 ms.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import Counter
from types import SimpleNamespace

import orjson
import pandas
import pyarrow
import pytest

from perfkit import fields
from perfkit.clock import ManualClock
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.instrument.gauge import InFlightGauge
from perfkit.serving.server.connection import Request
from perfkit.serving.server.histogram import BatchSizes, Histogram
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import Collated
from perfkit.serving.server.pipeline import Books, Pipeline, Plant
from perfkit.serving.server.plain import PlainCall
from perfkit.serving.server.predict import Prediction
from perfkit.serving.server.station import Station
from perfkit.settings import LedgerSettings, ServerSettings

TARGET = "0 expired reach predict, overshoot P99 at most one batch + 10 ms"
MS = 1_000_000
BATCH, PREPROCESS_NS, COLLATE_NS, PREDICT_NS = 8, MS // 5, MS, 10 * MS
ONE_BATCH_NS = BATCH * PREPROCESS_NS + COLLATE_NS + PREDICT_NS
ARRIVAL_NS = ONE_BATCH_NS / BATCH / 1.5  # 1.5 times what the worker can do
LONGEST_S = 0.2
CLIENTS = 128  # so many that many deadlines pass


class Agenda(ManualClock):
    """Virtual time on one thread: to wait is to live through everything that was to happen meanwhile."""

    def __init__(self):
        super().__init__(start_ns=1000 * MS)
        self._entries = []  # (instant, number, call), a heap
        self._numbers = itertools.count()
        self.at_the_end = None

    def call_at(self, at_ns, call):
        """As the event loop's timers do."""
        entry = [at_ns, next(self._numbers), call]
        heapq.heappush(self._entries, entry)
        return SimpleNamespace(cancel=lambda: entry.__setitem__(2, None))

    def advance(self, by_ns):
        self._live_until(self._now_ns + by_ns)

    def wait(self, condition, until_ns):
        condition.release()  # what happens meanwhile may need the lock
        if self._entries and (until_ns is None or self._entries[0][0] < until_ns):
            self._live_until(self._entries[0][0])
        elif until_ns is not None:
            self._live_until(until_ns)
        else:
            self.at_the_end()
        condition.acquire()

    def _live_until(self, until_ns):
        while self._entries and self._entries[0][0] <= until_ns:
            at_ns, _, call = heapq.heappop(self._entries)
            self._now_ns = max(self._now_ns, at_ns)
            if call is not None:
                call()
        self._now_ns = until_ns


class SlowModel:
    """Takes its time in each stage, and counts whose deadline had passed when predict began."""

    payloads = None

    def __init__(self, clock):
        self._clock = clock
        self.seen = self.seen_expired = 0

    def preprocess(self, payload):
        self._clock.advance(PREPROCESS_NS)
        return payload

    def collate(self, items):
        self._clock.advance(COLLATE_NS)
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items))

    def predict(self, inputs):
        now_ns = self._clock.now_ns()
        self.seen += len(inputs)
        self.seen_expired += sum(deadline_ns <= now_ns for deadline_ns in inputs)
        self._clock.advance(PREDICT_NS)
        return inputs

    def split(self, outputs, size):
        return outputs

    def postprocess(self, output):
        return output

    def example(self):
        return None


class VirtualServer:
    """The server's path from a whole request to its answer, on one thread and in virtual time."""

    def __init__(self):
        self.clock = clock = Agenda()
        self.model, device = SlowModel(clock), CpuDevice(clock=clock)
        settings = ServerSettings(model="x:Y", ledger=LedgerSettings(capacity=1024))
        settings = fields.replace(settings, {"batch.max_size": BATCH, "queue.depth": 10_000})
        books = Books(settings.ledger)
        for book in (books.requests, books.batches):
            book.clock, book.now_ns = clock, clock.now_ns
        outbox = SimpleNamespace(put=self._deliver, call_at=clock.call_at)
        self.pipeline = Pipeline(
            settings, Plant(model=self.model, device=device, outbox=outbox, books=books, clock=clock)
        )
        clock.at_the_end = self.pipeline._dispatcher.close
        self.service = SimpleNamespace(
            settings=settings,
            books=books,
            clock=clock,
            pipeline=self.pipeline,
            is_ready=True,
            accepted=0,
            gauge=InFlightGauge(clock.now_ns()),
            latency=Histogram(),
            slow_log=None,
            batch_sizes=BatchSizes(),
            rejects=Counter(),
            chance=random.Random(0),
            ended=[0] * len(EndState),
            answer_ids=itertools.count(1),
        )
        self.station = Station("model-0", self.pipeline._bench())
        self.overshoots_ns = []  # of those that were told that they had expired

    def _deliver(self, jobs):
        for job in jobs:
            job.receiver.job_done(job)

    def expect(self, at_ns, deadline_s):
        """A request will arrive."""
        deadline_ns = at_ns + round(float(deadline_s) * 1e9)
        connection = SimpleNamespace(is_gone=False, arrived_ns=at_ns, on_gone=None)
        connection.answer = lambda reply, closes: self._answered(reply, deadline_ns)
        body = orjson.dumps({"input": deadline_ns})
        request = Request(
            connection, b"POST", b"/predict", {b"perfkit-deadline": deadline_s.encode()}, body, at_ns, True
        )
        self.clock.call_at(at_ns, lambda: Prediction(self.service, request).begin(PlainCall))

    def _answered(self, reply, deadline_ns):
        if b" 504 " in reply[:16]:
            self.overshoots_ns.append(self.clock.now_ns() - deadline_ns)
        return self.clock.now_ns()

    def run(self):
        """Serve until nothing more will come."""
        dispatcher = self.pipeline._dispatcher
        seat = dispatcher.new_seat()
        while (taken := dispatcher.take(seat)) is not None:
            self.station.serve(taken)


def live(requests):
    """A server that has been through so many requests with random deadlines."""
    chance, server = random.Random(requests), VirtualServer()
    at_ns = server.clock.now_ns()
    for _ in range(requests):
        at_ns += round(chance.expovariate(1 / ARRIVAL_NS))
        server.expect(at_ns, f"{chance.uniform(0, LONGEST_S):.6f}")
    server.run()
    return server


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


SIZES = [pytest.param(4_000, id="smoke"), pytest.param(100_000, id="full", marks=pytest.mark.slow)]


@pytest.mark.parametrize("requests", SIZES)
def test_no_request_reaches_the_model_after_its_deadline(told, requests):
    server = live(requests)
    ended, expired = server.service.ended, server.service.ended[EndState.EXPIRED]
    overshoot_ns = quantile(server.overshoots_ns, 0.99)
    told(
        "R3",
        TARGET,
        place="virtual time (simulated)",
        requests=requests,
        expired=expired,
        expired_in_predict=server.model.seen_expired,
        overshoot_p99_s=overshoot_ns / 1e9,
        one_batch_s=ONE_BATCH_NS / 1e9,
    )
    assert ended[EndState.OK] + expired == sum(ended) == requests
    assert min(ended[EndState.OK], expired, server.model.seen) > requests // 10, "both ends are common"
    assert (server.model.seen_expired, len(server.overshoots_ns)) == (0, expired)
    assert min(server.overshoots_ns) >= 0, "nobody is turned away too early"
    assert overshoot_ns <= ONE_BATCH_NS + 10 * MS


def test_the_count_finds_a_server_that_looks_at_deadlines_only_in_the_queue(monkeypatch):
    """The control: deadlines that pass after a request was taken from the queue go unnoticed."""
    monkeypatch.setattr(Job, "is_over", lambda job, clock: False)
    assert live(1_000).model.seen_expired > 0


class Clients:
    """Closed-loop clients on keep-alive connections: each request is a number with a random deadline."""

    def __init__(self, port, requests):
        self._port = port
        self._numbers = iter(range(1, requests + 1))
        self._chance = random.Random(requests)
        self.deadline_ns = {}  # number -> from accepted on
        self.statuses = Counter()

    async def run(self):
        await asyncio.gather(*(self._one() for _ in range(CLIENTS)))

    async def _one(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for number in self._numbers:
            text = f"{self._chance.uniform(0, LONGEST_S):.6f}"
            self.deadline_ns[number] = round(float(text) * 1e9)
            body = b'{"input":%d}' % number
            head = (
                f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                f"Perfkit-Id: {number}\r\nPerfkit-Deadline: {text}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            self.statuses[int(answer[9:12])] += 1
            length = next(line for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()


def read_ledger(server, table):
    data = server.control.call("GET", f"/ledger?table={table}&since=0")
    return pyarrow.ipc.open_stream(data).read_all().to_pandas()


def serve_over_sockets(serve, witness, requests, changes):
    """What the clients, the model and the ledger say."""
    changes = changes | {"batch.max_size": BATCH, "queue.depth": 1000, "ledger.capacity": 1 << 17}
    server = serve("promise_models:Deadly", changes=changes, env={"PERFKIT_WITNESS": str(witness)})
    clients = Clients(server.port, requests)
    asyncio.run(clients.run())
    rows, batches = read_ledger(server, "requests"), read_ledger(server, "batches")
    rows["deadline_ns"] = rows["accepted_ns"] + rows["request_id"].map(clients.deadline_ns)
    rows = rows.merge(batches[["batch_id", "collated_ns"]], on="batch_id", how="left").set_index("request_id")
    seen = pandas.read_csv(witness, sep=" ", names=["request_id", "entered_ns"], index_col="request_id")
    seen = seen.join(rows)
    late, expired = seen["entered_ns"] - seen["deadline_ns"], rows[rows["status"] == 504]
    return clients.statuses, {
        "requests": len(rows),
        "expired": len(expired),
        "in_predict": len(seen),
        "expired_in_predict": int((seen["collated_ns"] >= seen["deadline_ns"]).sum()),
        "late_on_entry_max_s": max(0.0, float(late.max()) / 1e9),
        "overshoot_p99_s": float((expired["replied_ns"] - expired["deadline_ns"]).quantile(0.99)) / 1e9,
        "one_batch_p99_s": float((batches["woken_ns"] - batches["taken_ns"]).quantile(0.99)) / 1e9,
    }


PLACES = {
    "inline": {},
    "pools": {"preprocess.placement": "threads", "postprocess.placement": "threads"},
}


@pytest.mark.parametrize("place", PLACES)
def test_over_sockets_no_request_reaches_the_model_after_its_deadline(serve, told, tmp_path, place):
    statuses, figures = serve_over_sockets(serve, tmp_path / "witness", 1_000, PLACES[place])
    told("R3", TARGET, place=place, **figures)
    assert statuses.keys() <= {200, 504}
    assert (sum(statuses.values()), figures["requests"], statuses[504]) == (1_000, 1_000, figures["expired"])
    assert figures["expired_in_predict"] == 0
    assert min(figures["expired"], figures["in_predict"]) > 50, "both ends are common"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_over_sockets_none_of_a_hundred_thousand_reaches_the_model_after_its_deadline(serve, told, tmp_path):
    statuses, figures = serve_over_sockets(serve, tmp_path / "witness", 100_000, {})
    told("R3", TARGET, place="sockets", **figures)
    assert (sum(statuses.values()), statuses.keys() <= {200, 504}) == (100_000, True)
    assert figures["expired_in_predict"] == 0
    assert figures["overshoot_p99_s"] <= figures["one_batch_p99_s"] + 0.010
