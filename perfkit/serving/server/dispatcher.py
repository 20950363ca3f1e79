"""How do worker threads drive the pure scheduler in real time without polling?

Free workers park. The last one that parked is woken first: its caches are warm. At most one of
them, the *leader*, waits on the clock for a window to close; it is woken early when a batch is
full. Whoever leaves with a batch wakes the next worker if more waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from perfkit.clock import Clock
from perfkit.records import EndState
from perfkit.serving.scheduling.adaptive import AdaptiveBatch
from perfkit.serving.scheduling.decisions import CallerRuns, Displaced, Parked, Rejected, Send, WaitUntil
from perfkit.serving.scheduling.lanes import LaneScheduler
from perfkit.serving.scheduling.scheduler import Scheduler
from perfkit.serving.server.job import Job
from perfkit.serving.server.outbox import Exit
from perfkit.serving.server.rejections import REJECTIONS
from perfkit.serving.server.seat import Seat


class Taken(NamedTuple):
    """A batch in a worker's hands: since when the worker was free, when the batch was due, when it was taken."""

    jobs: list[Job]
    free_ns: int
    due_ns: int
    taken_ns: int


class Rest(NamedTuple):
    """Nothing for the worker now: it rests until its seat is notified, or until an instant."""

    until_ns: int | None


class Resting(Protocol):
    """A worker that may be woken; each has its own seat."""

    def notify(self) -> None:
        """Wake the worker. Called under the dispatcher's lock."""


class Dispatcher:
    """The scheduler behind a lock. Safe for any thread.

    `forward` takes a job that came in from the door to its first stage; False = that is the queue. It is called
    under the lock and must not call back.
    """

    def __init__(
        self,
        scheduler: Scheduler[Job] | LaneScheduler[Job],
        clock: Clock,
        outbox: Exit,
        forward: Callable[[Job], bool] = lambda job: False,
        tuner: AdaptiveBatch | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._forward = forward
        self._tuner = tuner
        self.wants_times = tuner is not None  # whether `served` is to be called
        if tuner is not None:
            self._retune(tuner)
        self._has_door = scheduler.limits.policy == "block"
        self._clock = clock
        self._outbox = outbox
        self._lock = threading.Lock()  # guards the scheduler, _parked, _leader and _is_closed
        self._parked: list[Resting] = []
        self._leader: Resting | None = None
        self._is_closed = False

    def new_seat(self) -> Seat:
        """What one worker parks on; each worker needs its own."""
        return Seat(self._lock)

    @property
    def queued(self) -> int:
        """Jobs that wait for a worker."""
        return self._scheduler.queued

    @property
    def admitted(self) -> int:
        """Jobs admitted and not yet in a worker's hands."""
        return self._scheduler.admitted

    @property
    def resting(self) -> int:
        """Workers that have nothing to do."""
        return len(self._parked) + (self._leader is not None)

    @property
    def batching(self) -> tuple[int, int]:
        """Largest batch and window in nanoseconds, as of now."""
        return self._scheduler.max_size, self._scheduler.max_delay_ns

    def served(self, size: int, took_ns: int) -> None:
        """A worker is done with a batch that it held for so long."""
        if self._tuner is not None:
            with self._lock:
                self._tuner.served(size, took_ns)
                self._retune(self._tuner)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is admitted."""
        return self._is_closed

    def counts_of(self, lane: int) -> tuple[int, int]:
        """How many jobs of a lane wait for a worker, and how many are admitted."""
        with self._lock:
            return self._scheduler.counts_of(lane)

    def admit(self, jobs: Sequence[Job]) -> Rejected | Parked | CallerRuns | None:
        """Ask for admission of the jobs of one request, all or none; who must leave for them is told so."""
        with self._lock:
            admission = self._scheduler.admit(jobs, self._clock.now_ns())
        if isinstance(admission, Displaced):
            self._reject(admission.items, "dropped", admission.retry_after_s)
            return None
        return admission

    def enter(self, jobs: Sequence[Job]) -> Rejected | Parked | CallerRuns | None:
        """As `admit`; what is admitted also starts on its way, all in one go."""
        with self._lock:
            now_ns = self._clock.now_ns()
            admission = self._scheduler.admit(jobs, now_ns)
            if admission is not None and not isinstance(admission, Displaced):
                return admission
            for job in jobs:
                if not self._forward(job):
                    self._enqueue(job)
        if admission is not None:
            self._reject(admission.items, "dropped", admission.retry_after_s)
        return None

    def turn_away(self) -> int | None:
        """Reject who has waited at the door for too long; returns when to call again, None = nobody waits there."""
        now_ns = self._clock.now_ns()
        with self._lock:
            late, rejected = self._scheduler.turn_away(now_ns)
            self._let_in()
            next_ns = self._scheduler.next_turn_away_ns()
        expired = [job for job in late if 0 < job.deadline_ns <= now_ns]
        if expired:
            self._report(expired)
        self._reject([job for job in late if job not in expired], rejected.reason, rejected.retry_after_s)
        return next_ns

    def withdraw(self, job: Job) -> None:
        """An admitted job ended before it reached the queue."""
        with self._lock:
            self._scheduler.withdraw(job)
            self._let_in()

    def room_for(self, jobs: Sequence[Job]) -> int:
        """How many jobs of this kind may still be admitted before the queue is full."""
        return self._scheduler.room_for(jobs)

    def finish(self, jobs: Sequence[Job]) -> None:
        """Admitted jobs were served without ever being queued."""
        with self._lock:
            self._scheduler.finish(jobs, self._clock.now_ns())
            self._let_in()

    def put(self, job: Job) -> None:
        """An admitted job is ready for a worker."""
        with self._lock:
            self._enqueue(job)

    def cancel(self, job: Job) -> bool:
        """Take a job out of the queue or from the door; False when it is at neither."""
        with self._lock:
            was_here = self._scheduler.cancel(job)
            self._let_in()
            return was_here

    def take(self, seat: Seat, patience_ns: int | None = None) -> Taken | None:
        """Block the worker until it has a batch; None when the dispatcher is closed and empty.

        With a patience also None when there was nothing for the worker for so long.
        """
        with self._lock:
            free_ns = self._clock.now_ns()
            until_ns = None if patience_ns is None else free_ns + patience_ns
            while isinstance(found := self._look(seat, free_ns, until_ns), Rest):
                try:
                    self._clock.wait(seat, found.until_ns)
                finally:
                    self._rise(seat)
            return found

    def look(self, seat: Resting, free_ns: int) -> Taken | Rest | None:
        """As `take`, for a worker that must not block: told to rest, it looks again once its seat has been notified
        or the instant has come.
        """
        with self._lock:
            self._rise(seat)
            return self._look(seat, free_ns, None)

    def leave(self, seat: Resting) -> None:
        """A worker died, perhaps after it was woken for something that waits: somebody else looks."""
        with self._lock:
            self._rise(seat)
            if self._scheduler.queued:
                self._wake_one()

    def drain(self) -> None:
        """Admit nothing more; who waits at the door comes in."""
        with self._lock:
            self._scheduler.drain()
            self._let_in()

    def close(self) -> None:
        """Admit nothing more; workers leave once the queue is empty."""
        self.drain()
        with self._lock:
            self._is_closed = True
            for seat in [*self._parked, *([self._leader] if self._leader else [])]:
                seat.notify()

    def _enqueue(self, job: Job) -> None:
        job.queued_ns = self._clock.now_ns()
        self._scheduler.enqueue(job)
        if self._tuner is not None:
            self._tuner.arrived(job.queued_ns)
            self._retune(self._tuner)
        self._wake_one()

    def _retune(self, tuner: AdaptiveBatch) -> None:
        scheduler = self._scheduler
        scheduler.max_size, scheduler.max_delay_ns = tuner.max_size, tuner.max_delay_ns
        scheduler.max_silence_ns = tuner.max_silence_ns

    def _let_in(self) -> bool:
        """Who waits at the door comes in as far as there is room; whether anybody did."""
        if not self._has_door:
            return False
        entered = self._scheduler.let_in()
        for job in entered:
            if not self._forward(job):
                self._enqueue(job)
        return bool(entered)

    def _wake_one(self) -> None:
        # While a leader waits for the window, single arrivals are its business until a batch is full.
        if self._leader is not None:
            if self._scheduler.is_full_batch:
                self._leader.notify()
        elif self._parked:
            self._parked.pop().notify()

    def _look(self, seat: Resting, free_ns: int, until_ns: int | None) -> Taken | Rest | None:
        while True:
            now_ns = self._clock.now_ns()
            decision = self._scheduler.decide(now_ns)
            if decision.expired:
                self._report(decision.expired)
            has_news = self._has_door and self._let_in()
            if isinstance(decision, Send):
                if self._scheduler.queued:
                    self._wake_one()
                return Taken(decision.batch, free_ns, decision.due_ns, now_ns)
            if has_news:
                continue
            if isinstance(decision, WaitUntil) and self._leader is None:
                self._leader = seat
                return Rest(decision.until_ns)
            if (self._is_closed and not isinstance(decision, WaitUntil)) or (
                until_ns is not None and now_ns >= until_ns
            ):
                return None
            self._parked.append(seat)
            return Rest(until_ns)

    def _rise(self, seat: Resting) -> None:
        if self._leader is seat:
            self._leader = None
        elif seat in self._parked:  # out of patience, or woken by close: not by _wake_one
            self._parked.remove(seat)

    def _reject(self, jobs: Sequence[Job], reason: str, retry_after_s: float) -> None:
        for job in jobs:
            job.retry_after_s = retry_after_s
            job.end(EndState.REJECTED, reason, REJECTIONS[reason])
        if jobs:
            self._outbox.put(jobs)

    def _report(self, expired: list[Job]) -> None:
        for job in expired:
            job.expire()
        self._outbox.put(expired)
