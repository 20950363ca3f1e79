"""How does a pool grow and shrink? By Java's rule; this drives it with real threads.

A thread that is started for a request serves that request first, alone and ahead of what is queued, as
in Java; from then on it takes from the queue, batches included.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence

from perfkit.serving.scheduling.decisions import CallerRuns, Parked, Rejected
from perfkit.serving.scheduling.elastic import ElasticLimits, ElasticRule
from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.crews.newcomer import fail_unserved, open_for, serve_at
from perfkit.serving.server.crews.per_request import warm_up_once
from perfkit.serving.server.crews.roster import Roster
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.seat import Seat
from perfkit.serving.server.station import Bench, Station


class ElasticCrew:
    """Between `core` and `max` threads over the dispatcher's queue."""

    only_queues = False

    def __init__(self, bench: Bench, limits: ElasticLimits) -> None:
        self._bench = bench
        self._dispatcher = bench.dispatcher
        self._clock = bench.device.clock
        self._roster = Roster(bench.name, bench.deaths)
        self._lock = threading.Lock()  # guards _rule
        self._rule = ElasticRule(limits)
        self._promised: set[Job] = set()  # admitted to a thread of their own; for the event loop's thread

    def start(self) -> tuple[int, ...]:
        """Warm the model up; threads come with the requests."""
        return (warm_up_once(self._bench),)

    def admit(self, jobs: Sequence[Job]) -> Rejected | Parked | CallerRuns | None:
        """Promise threads and places in the queue; beyond both, the queue's policy decides."""
        dispatcher = self._dispatcher
        with self._lock:
            placed = None if dispatcher.is_closed else self._rule.place(len(jobs), dispatcher.room_for(jobs))
        if placed is None:
            return dispatcher.admit(jobs)
        if placed.queues and (answer := dispatcher.admit(jobs[placed.starts :])) is not None:
            return answer
        with self._lock:  # meanwhile threads can only have left: what was placed still fits
            self._rule.start(placed.starts)
        self._promised.update(jobs[: placed.starts])
        return None

    def takes(self, job: Job) -> bool:
        """Start the thread that was promised to the job, if one was."""
        if job not in self._promised:
            return False
        self._promised.remove(job)
        job.queued_ns = self._clock.now_ns()
        self._hire(job)
        return True

    def put(self, job: Job) -> None:
        """Queue the job, and see to it that somebody is there."""
        self._dispatcher.put(job)
        self._staff_queue()

    def close(self) -> None:
        """Let the queue run empty; the threads leave."""
        self._dispatcher.close()
        self._roster.join()

    def headcount(self) -> Headcount:
        """By the rule: a thread that is leaving counts no more."""
        rule = self._rule
        return Headcount(current=rule.threads, peak=rule.peak, started=rule.started)

    def _staff_queue(self) -> None:
        with self._lock:
            is_unstaffed = self._rule.is_unstaffed()
        if is_unstaffed:
            self._hire(None)

    def _hire(self, first: Job | None) -> None:
        try:
            self._roster.start(functools.partial(self._live, first))
        except RuntimeError:
            with self._lock:
                self._rule.leave()
            fail_unserved([first] if first is not None else [], self._bench.outbox)

    def _live(self, first: Job | None, name: str) -> None:
        station = open_for([first] if first is not None else [], name, self._bench)
        if station is None:
            self._give_up()
            return
        try:
            self._stay(station, first)
        finally:
            station.close()

    def _stay(self, station: Station, first: Job | None) -> None:
        seat = self._dispatcher.new_seat()
        try:
            if first is not None:
                serve_at(station, first, self._bench)
            while (taken := self._next(seat)) is not None:
                station.serve(taken)
        except BaseException:
            with self._lock:
                self._rule.leave()
            self._dispatcher.leave(seat)
            if self._dispatcher.queued:
                self._staff_queue()
            raise

    def _next(self, seat: Seat) -> Taken | None:
        """What the thread serves next; None when it is to leave, and it has been counted out."""
        dispatcher = self._dispatcher
        while True:
            with self._lock:
                patience_ns = self._rule.patience_ns()
            taken = dispatcher.take(seat, patience_ns)
            if taken is not None:
                return taken
            with self._lock:
                queued = dispatcher.queued
                if dispatcher.is_closed and not queued:
                    self._rule.leave()
                    return None
                if self._rule.lets_go(queued):
                    return None

    def _give_up(self) -> None:
        """The thread has got no station. If it was the last, nobody else would ever answer what is queued."""
        with self._lock:
            self._rule.leave()
            is_alone = self._rule.threads == 0
        seat = self._dispatcher.new_seat()
        while is_alone and (taken := self._dispatcher.take(seat, 0)) is not None:
            fail_unserved(taken.jobs, self._bench.outbox)
