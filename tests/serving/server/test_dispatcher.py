"""Do worker threads drive the pure scheduler without polling, without a lost wake-up, and without a crowd?"""

from __future__ import annotations

import random
import threading

import pytest

from perfkit.clock import REAL_CLOCK, ManualClock
from perfkit.records import EndState
from perfkit.serving.scheduling.decisions import Limits
from perfkit.serving.scheduling.scheduler import Scheduler
from perfkit.serving.server.dispatcher import Dispatcher, Taken

SECOND = 1_000_000_000


class CountingScheduler(Scheduler):
    """Counts how often somebody asked what to do."""

    def __init__(self, limits):
        super().__init__(limits)
        self.asked = 0

    def decide(self, now_ns):
        self.asked += 1
        return super().decide(now_ns)


class WatchedClock(ManualClock):
    """Knows who waits: for an instant (a leader), or just parked."""

    def __init__(self):
        super().__init__(start_ns=SECOND)
        self.waits = []  # the instants of those that wait now

    def wait(self, condition, until_ns):
        self.waits.append(until_ns)
        try:
            super().wait(condition, until_ns)
        finally:
            self.waits.remove(until_ns)


class Crew:
    """A dispatcher with worker threads that report each batch they take."""

    def __init__(self, finished, clock, **limits):
        self.clock = clock
        self.scheduler = CountingScheduler(Limits(**({"max_size": 1, "max_delay_ns": 0, "depth": 10_000} | limits)))
        self.dispatcher = Dispatcher(self.scheduler, clock, finished)
        self.taken = []
        self.is_leaving = False
        self.threads = []

    def hire(self, name):
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _work(self):
        seat = self.dispatcher.new_seat()
        while (taken := self.dispatcher.take(seat)) is not None:
            self.taken.append((threading.current_thread().name, taken))
            if self.is_leaving:
                return

    def put(self, job):
        assert self.dispatcher.admit([job]) is None
        self.dispatcher.put(job)
        return job

    def dismiss(self):
        self.dispatcher.close()
        for thread in self.threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.fixture
def crew_of(finished, eventually):
    """Makes a crew on a watched clock; every worker sits down before the next one comes."""
    crews = []

    def make(names, **limits):
        crew = Crew(finished, WatchedClock(), **limits)
        crews.append(crew)
        for seated, name in enumerate(names, 1):
            crew.hire(name)
            eventually(lambda seated=seated: len(crew.clock.waits) == seated)
        return crew

    yield make
    for crew in crews:
        crew.dismiss()


def test_a_free_worker_takes_what_is_put_and_knows_since_when_it_was_free(crew_of, new_job, eventually):
    crew = crew_of(["w"])
    crew.clock._now_ns += 500  # time passes without a wake-up
    job = crew.put(new_job())
    eventually(lambda: crew.taken)
    expected = Taken([job], free_ns=SECOND, due_ns=SECOND + 500, taken_ns=SECOND + 500)
    assert crew.taken == [("w", expected)]


def test_parked_workers_do_not_ask_again_until_something_comes(crew_of, new_job, eventually):
    crew = crew_of("abcdefgh")
    assert crew.scheduler.asked == 8
    threading.Event().wait(0.15)
    assert crew.scheduler.asked == 8
    crew.put(new_job())
    eventually(lambda: len(crew.clock.waits) == 8 and crew.taken)
    assert crew.scheduler.asked == 10, "one worker woke, took the request, and asked once more before it parked"


def test_the_worker_that_parked_last_is_woken_first(crew_of, new_job, eventually):
    crew = crew_of("abc")
    for count in (1, 2, 3):
        crew.put(new_job())
        eventually(lambda count=count: len(crew.taken) == count and len(crew.clock.waits) == 3)
    assert [name for name, _ in crew.taken] == ["c", "c", "c"]


def test_one_worker_alone_waits_for_the_window_to_close(crew_of, new_job, eventually):
    crew = crew_of("abcd", max_size=8, max_delay_ns=1_000)
    jobs = [crew.put(new_job()), crew.put(new_job())]
    eventually(lambda: SECOND + 1_000 in crew.clock.waits and len(crew.clock.waits) == 4)
    assert sorted(map(str, crew.clock.waits)) == [str(SECOND + 1_000), "None", "None", "None"]
    crew.clock.advance(1_000)
    eventually(lambda: crew.taken)
    assert [taken for _, taken in crew.taken] == [
        Taken(jobs, free_ns=SECOND, due_ns=SECOND + 1_000, taken_ns=SECOND + 1_000)
    ]


def test_the_one_that_waits_is_woken_early_by_a_full_batch(crew_of, new_job, eventually):
    crew = crew_of("ab", max_size=3, max_delay_ns=1_000_000)
    crew.put(new_job())
    eventually(lambda: SECOND + 1_000_000 in crew.clock.waits)
    asked = crew.scheduler.asked
    crew.put(new_job())
    threading.Event().wait(0.05)
    assert (crew.scheduler.asked, crew.taken) == (asked, []), "an arrival that fills nothing wakes nobody"
    crew.put(new_job())
    eventually(lambda: crew.taken)
    assert [len(taken.jobs) for _, taken in crew.taken] == [3]


def test_whoever_leaves_with_a_batch_wakes_a_mate_for_the_rest(finished, new_job, eventually):
    crew = Crew(finished, WatchedClock(), max_size=2)
    jobs = [crew.put(new_job()) for _ in range(5)]
    for name in "abc":
        crew.hire(name)
    eventually(lambda: sum(len(taken.jobs) for _, taken in crew.taken) == 5)
    assert sorted(len(taken.jobs) for _, taken in crew.taken) == [1, 2, 2]
    assert {id(job) for _, taken in crew.taken for job in taken.jobs} == {id(job) for job in jobs}
    crew.dismiss()


def test_a_burst_behind_a_waiting_worker_occupies_its_mates_too(crew_of, new_job, eventually):
    crew = crew_of("abc", max_size=2, max_delay_ns=1_000_000)
    crew.is_leaving = True  # whoever has a batch does not come back for another
    crew.put(new_job())
    eventually(lambda: SECOND + 1_000_000 in crew.clock.waits)
    dispatcher = crew.dispatcher
    with dispatcher._lock:  # the burst is over before the one that waits can react
        for _ in range(5):
            job = new_job()
            job.queued_ns = SECOND
            dispatcher._scheduler.admit([job], SECOND)
            dispatcher._scheduler.enqueue(job)
            dispatcher._wake_one()
    eventually(lambda: len(crew.taken) == 3)
    assert [len(taken.jobs) for _, taken in crew.taken] == [2, 2, 2]
    assert len({name for name, _ in crew.taken}) == 3


def test_a_request_that_expires_in_the_queue_is_answered_when_its_deadline_passes(
    crew_of, finished, new_job, eventually
):
    crew = crew_of("a", max_size=8, max_delay_ns=10_000)
    job = crew.put(new_job(deadline_ns=SECOND + 3_000))
    eventually(lambda: crew.clock.waits == [SECOND + 3_000])
    crew.clock.advance(3_000)
    eventually(lambda: finished.jobs)
    assert [(finished.jobs, job.end_state, job.code, crew.taken)] == [([job], EndState.EXPIRED, "deadline", [])]


def test_closing_lets_the_queue_drain_and_then_sends_every_worker_home(crew_of, finished, new_job):
    crew = crew_of("abc", max_size=4, max_delay_ns=60 * SECOND)
    jobs = [crew.put(new_job()) for _ in range(3)]
    crew.dismiss()
    assert [job for _, taken in crew.taken for job in taken.jobs] == jobs
    assert crew.dispatcher.admit([new_job()]).reason == "draining"


@pytest.mark.parametrize("max_delay_ns", [0, 300_000])
def test_nothing_is_lost_or_taken_twice_when_many_threads_put_take_and_cancel(
    finished, new_job, max_delay_ns, eventually
):
    crew = Crew(finished, REAL_CLOCK, max_size=4, max_delay_ns=max_delay_ns)
    for index in range(8):
        crew.hire(f"w{index}")
    jobs, cancelled = [], []

    def produce(seed):
        chance = random.Random(seed)
        for _ in range(250):
            job = crew.put(new_job())
            jobs.append(job)
            if chance.random() < 0.1 and crew.dispatcher.cancel(job):
                cancelled.append(job)

    producers = [threading.Thread(target=produce, args=(seed,)) for seed in range(6)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    # Without closing: a lost wake-up would leave requests behind while workers are parked.
    eventually(lambda: sum(len(taken.jobs) for _, taken in crew.taken) + len(cancelled) == len(jobs))
    crew.dismiss()
    seen = [id(job) for _, taken in crew.taken for job in taken.jobs] + [id(job) for job in cancelled]
    assert sorted(seen) == sorted(id(job) for job in jobs)
    assert max(len(taken.jobs) for _, taken in crew.taken) <= 4
    assert (crew.dispatcher.admitted, crew.dispatcher.queued) == (0, 0)


@pytest.mark.parametrize("has_deadlines", [False, True])
@pytest.mark.parametrize("max_delay_ns", [0, 300_000])
def test_nobody_is_left_at_the_door_when_many_threads_bring_more_than_fits(
    finished, new_job, max_delay_ns, has_deadlines, eventually
):
    """Without closing: whoever makes room lets the next ones in, also when what made room had expired."""
    crew = Crew(
        finished, REAL_CLOCK, max_size=4, max_delay_ns=max_delay_ns, depth=3, policy="block", block_ns=60 * SECOND
    )
    for index in range(4):
        crew.hire(f"w{index}")
    jobs = []

    def produce(seed):
        chance = random.Random(seed)
        for _ in range(200):
            is_short = has_deadlines and chance.random() < 0.3
            job = new_job(deadline_ns=REAL_CLOCK.now_ns() + 20_000 if is_short else 0)
            jobs.append(job)
            if crew.dispatcher.admit([job]) is None:
                crew.dispatcher.put(job)

    producers = [threading.Thread(target=produce, args=(seed,)) for seed in range(6)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    eventually(lambda: sum(len(taken.jobs) for _, taken in crew.taken) + len(finished.jobs) == len(jobs))
    crew.dismiss()
    seen = [id(job) for _, taken in crew.taken for job in taken.jobs] + [id(job) for job in finished.jobs]
    assert sorted(seen) == sorted(id(job) for job in jobs)
    assert all(job.end_state is EndState.EXPIRED for job in finished.jobs)
    assert (crew.dispatcher.admitted, crew.scheduler.parked) == (0, 0)
