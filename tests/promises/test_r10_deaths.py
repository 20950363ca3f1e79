"""R10: does a thread that dies leave nobody waiting, is it replaced, and does a crash loop say so?

Death is a thread's own last act, so it is known at once. Target: over 1,000 injected deaths no request is left without
an end; five deaths within a minute make the service not ready.
"""

from __future__ import annotations

import json
import random
import threading
import time

import pytest

from perfkit import fields
from perfkit.clock import NS_PER_S, ManualClock
from perfkit.errors import ConfigError
from perfkit.records import EndState
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.restarts import FIRST_PAUSE_NS, WINDOW_NS
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.deaths import Deaths, give_up
from perfkit.serving.server.job import Job
from perfkit.serving.server.pipeline import Pipeline
from perfkit.serving.server.plant import Books, Plant
from perfkit.serving.server.post import Post
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings

PATIENCE_S = 30
TARGET = "0 hung futures, noticed within 1 s"


class HastyClock:
    """The real clock, a thousand times as fast: a crash loop's pauses last milliseconds."""

    def now_ns(self):
        return time.monotonic_ns() * 1000

    def wait(self, condition, until_ns):
        condition.wait(None if until_ns is None else max(0.0, (until_ns - self.now_ns()) / NS_PER_S / 1000))

    def sleep_until(self, until_ns):
        time.sleep(max(0.0, (until_ns - self.now_ns()) / NS_PER_S / 1000))


class Murderer(BaseException):
    """Not even an Exception."""


class FragileDevice(CpuDevice):
    """Raises in its own code, not in the model's: `breaks` says what, at a place."""

    def __init__(self, clock):
        super().__init__(clock)
        self.breaks = lambda place: None

    def run(self, call, inputs, stream, span):
        self._perhaps("run")
        outputs = super().run(call, inputs, stream, span)
        self._perhaps("after run")
        return outputs

    def synchronize(self, event):
        self._perhaps("synchronize")

    def open_lane(self, worker, intra_op_threads=1, priority=0):
        self._perhaps("open_lane")
        return super().open_lane(worker, intra_op_threads, priority)

    def enter_worker(self, intra_op_threads):
        self._perhaps("enter_worker")
        super().enter_worker(intra_op_threads)

    def leave_worker(self):
        self._perhaps("leave_worker")
        super().leave_worker()

    def _perhaps(self, place):
        error = self.breaks(place)
        if error is not None:
            raise error


class Echo:
    def predict(self, inputs):
        return inputs

    def example(self):
        return 1


class Rig:
    """A pipeline over a device that breaks, and what became of every job."""

    def __init__(self, finished, clock, **changes):
        settings = fields.replace(ServerSettings(model="x:Y", ledger=LedgerSettings(capacity=1 << 14)), changes)
        self.books = Books(settings.ledger)
        self.books.requests.clock = clock
        self.device = FragileDevice(clock)
        self.lost = []
        self.finished = finished
        plant = Plant(
            model=complete(Echo()),
            device=self.device,
            outbox=finished,
            books=self.books,
            clock=clock,
            on_lost=self.lost.append,
        )
        self.pipeline = Pipeline(settings, plant)
        self.pipeline.start()

    def submit(self, payload=1):
        """A job that was taken in, or why it was not."""
        job = Job(payload, receiver=None, row=self.books.requests.open(), deadline_ns=0)
        return self.pipeline.enter([job]) or job

    def break_once(self, place, error):
        """The next call at a place raises."""
        left = [error]
        self.device.breaks = lambda at: left.pop() if at == place and left else None


class Finished:
    """Where finished jobs go: an outbox without an event loop. Any thread puts."""

    def __init__(self):
        self.jobs = []
        self.killed_s = {}  # when a thread was told to die
        self.noticed_s = [0.0]  # how long that took to become known

    def put(self, jobs):
        self.jobs.extend(jobs)
        killed_s = self.killed_s.pop(threading.get_ident(), None)
        if killed_s is not None and any(job.code == "worker_died" for job in jobs):
            self.noticed_s.append(time.monotonic() - killed_s)


@pytest.fixture
def finished():
    """An outbox that keeps what it gets."""
    return Finished()


@pytest.fixture
def rig_of(finished, eventually):
    """Makes rigs; closes them after the test, which must end every thread."""
    rigs = []

    def make(clock=None, **changes):
        rigs.append(Rig(finished, clock or HastyClock(), **changes))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.device.breaks = lambda place: None
        rig.pipeline.close()
    names = ("model-", "preprocess-", "postprocess-")
    eventually(lambda: not any(thread.name.startswith(names) for thread in threading.enumerate()))


CREWS = {
    "pool": {"workers": 2},
    "serial": {"concurrency.model": "serial"},
    "batches": {"workers": 2, "batch.max_size": 4},
    "pools": {"workers": 2, "preprocess.placement": "threads", "postprocess.placement": "threads"},
    "thread_per_request": {"concurrency.model": "thread_per_request"},
    "asyncio": {"concurrency.model": "asyncio", "workers": 2},
    "elastic": {"concurrency.model": "elastic", "elastic.core": 1, "elastic.max": 2},
}


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("place", ["run", "after run", "synchronize"])
def test_a_death_fails_its_own_request_and_the_next_one_is_served(rig_of, eventually, crew, place):
    rig = rig_of(**CREWS[crew])
    rig.break_once(place, Murderer("a bug"))
    victim = rig.submit()
    eventually(lambda: victim in rig.finished.jobs)
    assert (victim.end_state, victim.code) == (EndState.FAILED, "worker_died")
    assert victim.message == "the thread that worked on it died of Murderer: a bug; send it again"
    heir = rig.submit()
    eventually(lambda: heir in rig.finished.jobs)
    assert (heir.end_state, rig.finished.jobs.count(victim), rig.lost) == (EndState.OK, 1, [])
    eventually(lambda: (rig.pipeline.deaths.count, rig.pipeline.deaths.vacant) == (1, 0))


@pytest.mark.parametrize("crew", CREWS)
def test_a_lost_device_is_told_and_its_request_may_be_sent_again(rig_of, eventually, crew):
    rig = rig_of(**CREWS[crew])
    rig.break_once("synchronize", DeviceLost("the card has fallen off the bus"))
    victim = rig.submit()
    eventually(lambda: victim in rig.finished.jobs)
    assert (victim.end_state, victim.code, victim.retry_after_s) == (EndState.REJECTED, "device_lost", 1.0)
    eventually(lambda: rig.lost == ["the card has fallen off the bus"])
    assert rig.pipeline.deaths.count == 0


def test_a_caller_that_runs_its_own_request_outlives_a_death(rig_of, eventually):
    gate = threading.Event()
    rig = rig_of(**{"queue.policy": "caller_runs", "queue.depth": 1})

    def breaks(place):
        if place != "run":
            return None
        if threading.current_thread() is threading.main_thread():
            return Murderer("a bug")
        gate.wait(PATIENCE_S)
        return None

    rig.device.breaks = breaks
    held = [rig.submit()]
    eventually(lambda: rig.pipeline.queued == 0)
    held.append(rig.submit())
    mine = rig.submit()
    gate.set()
    eventually(lambda: len(rig.finished.jobs) == 3)
    assert [job.code for job in (mine, *held)] == ["worker_died", "", ""]
    assert rig.pipeline.deaths.count == 1


def kill_often(rig_of, eventually, told, crew, deaths):
    """Random deaths at random places until so many happened: no job is left without an end."""
    chance, lock = random.Random(deaths), threading.Lock()
    rig = rig_of(**CREWS[crew])
    kinds = [Murderer, SystemExit, KeyError, MemoryError]

    def breaks(place):
        with lock:
            rig.finished.killed_s.pop(threading.get_ident(), None)  # of a thread that held nothing when it died
            if chance.random() > 0.1:
                return None
            rig.finished.killed_s[threading.get_ident()] = time.monotonic()
            return chance.choice(kinds)(f"injected in {place}")

    rig.device.breaks = breaks
    jobs, rejected = [], 0
    while rig.pipeline.deaths.count < deaths:
        entered = rig.submit()
        if isinstance(entered, Rejected):
            rejected += entered.reason == "crash_loop"
            threading.Event().wait(0.001)
        else:
            jobs.append(entered)
    rig.device.breaks = lambda place: None
    eventually(lambda: len(rig.finished.jobs) >= len(jobs))
    hung = sum(job.end_state is EndState.OPEN for job in jobs)
    told(
        "R10",
        TARGET,
        crew=crew,
        deaths=rig.pipeline.deaths.count,
        requests=len(jobs),
        hung=hung,
        noticed_max_s=max(rig.finished.noticed_s),
    )
    assert sorted(map(id, rig.finished.jobs)) == sorted(map(id, jobs)), "each once"
    assert {job.end_state for job in jobs} <= {EndState.OK, EndState.FAILED, EndState.REJECTED}
    assert rejected > 0, "a crash loop takes no requests"
    assert max(rig.finished.noticed_s) <= 1.0


@pytest.mark.parametrize("crew", CREWS)
def test_thirty_deaths_leave_nobody_waiting(rig_of, eventually, told, crew):
    kill_often(rig_of, eventually, told, crew, 30)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("crew", CREWS)
def test_a_thousand_deaths_leave_nobody_waiting(rig_of, eventually, told, crew):
    kill_often(rig_of, eventually, told, crew, 1000)


def test_the_hunt_for_a_job_without_an_end_finds_one(rig_of, eventually, monkeypatch):
    """The control of the tests above: a station that buries nobody."""
    monkeypatch.setattr("perfkit.serving.server.station.give_up", lambda jobs, why: None)
    rig = rig_of()
    rig.break_once("run", Murderer())
    victim = rig.submit()
    eventually(lambda: rig.pipeline.deaths.count == 1)
    assert victim.end_state is EndState.OPEN


def test_in_a_crash_loop_what_is_queued_is_turned_away_and_new_requests_are_refused(rig_of, eventually):
    rig = rig_of(ManualClock(start_ns=1), **{"workers": 2, "min_workers": 2})
    clock = rig.device.clock
    assert rig.pipeline.deaths.unfit() is None
    for number in range(5):
        rig.break_once("run", Murderer())
        rig.submit()
        eventually(lambda number=number: rig.pipeline.deaths.count == number + 1)
        if number < 4:
            clock.advance(FIRST_PAUSE_NS << 3)
            eventually(lambda: rig.pipeline.deaths.vacant == 0)
    eventually(lambda: rig.pipeline.deaths.vacant == 1)
    refused = rig.submit()
    assert (refused, refused.reason) == (rig.pipeline.deaths.unfit(), "crash_loop")
    clock.advance(10 * NS_PER_S)
    eventually(lambda: rig.pipeline.deaths.vacant == 0)
    assert rig.submit().reason == "crash_loop", "a successor is at work, but it is too early to trust it"
    clock.advance(WINDOW_NS)
    healed = rig.submit()
    eventually(lambda: healed in rig.finished.jobs)
    assert (healed.end_state, rig.pipeline.deaths.unfit()) == (EndState.OK, None)


def test_what_waits_for_workers_that_all_died_in_a_crash_loop_is_not_left_waiting(rig_of, eventually):
    rig = rig_of(ManualClock(start_ns=1), **{"batch.max_size": 2, "batch.max_delay_s": 0.0})
    clock, gate = rig.device.clock, threading.Event()
    for number in range(4):
        rig.break_once("run", Murderer())
        rig.submit()
        eventually(lambda number=number: rig.pipeline.deaths.count == number + 1)
        clock.advance(FIRST_PAUSE_NS << 3)
        eventually(lambda: rig.pipeline.deaths.vacant == 0)

    def last(place):
        if place == "run":
            gate.wait(PATIENCE_S)
            return Murderer()
        return None

    rig.device.breaks = last
    rig.submit()
    eventually(lambda: rig.pipeline.queued == 0)
    waiting = [rig.submit() for _ in range(10)]
    gate.set()
    eventually(lambda: len(rig.finished.jobs) == 15)
    assert {(job.end_state, job.code) for job in waiting} == {(EndState.REJECTED, "crash_loop")}


@pytest.mark.parametrize("crew", CREWS)
def test_a_pipeline_can_be_closed_whatever_dies_meanwhile(rig_of, eventually, crew):
    """Each successor dies before it can take anything, so that only the crash loop's end is left."""
    rig, gate = rig_of(**CREWS[crew]), threading.Event()

    def breaks(place):
        if place == "enter_worker":
            return Murderer()
        if place == "run":
            gate.wait(PATIENCE_S)
            return Murderer()
        return None

    jobs = [rig.submit()]
    eventually(lambda: rig.finished.jobs)
    rig.device.breaks = breaks
    jobs += [entered for _ in range(20) if isinstance(entered := rig.submit(), Job)]  # the others were refused
    threading.Timer(0.05, gate.set).start()
    rig.pipeline.close()
    assert sorted(map(id, rig.finished.jobs)) == sorted(map(id, jobs))
    assert EndState.OPEN not in {job.end_state for job in jobs}


def test_the_event_loop_of_a_crew_is_replaced_too(rig_of, eventually, monkeypatch):
    rig = rig_of(**CREWS["asyncio"])
    served = rig.submit()
    eventually(lambda: served in rig.finished.jobs)
    dispatcher = rig.pipeline._sections[0].dispatcher
    look, left = dispatcher.look, [Murderer()]

    def broken(seat, free_ns):
        if left:
            raise left.pop()
        return look(seat, free_ns)

    monkeypatch.setattr(dispatcher, "look", broken)
    jobs = [rig.submit() for _ in range(5)]
    eventually(lambda: len(rig.finished.jobs) == 6)
    assert ({job.end_state for job in jobs}, rig.pipeline.deaths.count) == ({EndState.OK}, 1)


def test_with_fewer_workers_than_there_have_to_be_it_is_not_ready_and_still_takes_requests(rig_of, eventually):
    rig = rig_of(ManualClock(start_ns=1), **{"workers": 2, "min_workers": 2})
    for _ in range(2):  # the first successor starts at once, the second one waits
        rig.break_once("run", Murderer())
        rig.submit()
        eventually(lambda: rig.pipeline.deaths.vacant == 1 or rig.pipeline.deaths.count == 1)
    eventually(lambda: (rig.pipeline.deaths.count, rig.pipeline.deaths.vacant) == (2, 1))
    assert rig.pipeline.deaths.unfit().reason == "few_workers"
    served = rig.submit()
    eventually(lambda: served in rig.finished.jobs)
    assert served.end_state is EndState.OK
    rig.device.clock.advance(FIRST_PAUSE_NS)
    eventually(lambda: rig.pipeline.deaths.unfit() is None)


def test_more_workers_than_there_are_cannot_have_to_be_there():
    with pytest.raises(ConfigError, match=r"^min_workers is 3 with workers = 2; it takes at most as many$"):
        ServerSettings(workers=2, min_workers=3)
    assert ServerSettings(workers=2, min_workers=0).min_workers == 0


def test_where_the_system_gives_no_new_thread_the_old_one_goes_on(clock, monkeypatch):
    done, names = threading.Event(), []

    def work():
        names.append(threading.current_thread().ident)
        if len(names) == 1:
            monkeypatch.setattr(threading.Thread, "start", lambda thread: refuse())
            raise Murderer
        done.set()

    def refuse():
        raise RuntimeError("can't start new thread")

    post = Post("model-0", work, lambda starts_ns: True, Deaths(clock, print))
    post.start()
    assert done.wait(PATIENCE_S)
    post.join()
    assert len(set(names)) == 1


def test_who_has_ended_keeps_that_end():
    ended, open_one = (Job(None, receiver=None, row=0, deadline_ns=0) for _ in range(2))
    ended.end(EndState.OK)
    give_up([ended, open_one], ValueError("x"))
    assert [job.end_state for job in (ended, open_one)] == [EndState.OK, EndState.FAILED]


def test_a_server_in_a_crash_loop_says_so_and_lives_on(serve, dial, eventually):
    server = serve("promise_models:Fragile")
    wire = dial(server.port)
    for deaths in range(1, 6):
        status, _, body = wire.ask("/predict", {"input": "die"})
        assert (status, json.loads(body)["error"]["code"]) == (500, "worker_died")
        if deaths < 5:
            eventually(lambda deaths=deaths: server.stats()["deaths"] == {"count": deaths, "vacant": 0})
            assert wire.ask("/predict", {"input": deaths})[0] == 200
    eventually(lambda: server.stats()["deaths"]["count"] == 5)  # the answer may come before its thread's end is told
    for path, document in (("/health/ready", None), ("/predict", {"input": 1})):
        status, headers, body = wire.ask(path, document)
        assert (status, json.loads(body)["error"]["code"]) == (503, "crash_loop")
        assert 0 < int(headers["retry-after"]) <= 90
    assert wire.ask("/health/live")[0] == 200
    assert server.stats()["is_ready"] is False
    assert b"perfkit_thread_deaths_total 5.0" in wire.ask("/metrics")[2]
