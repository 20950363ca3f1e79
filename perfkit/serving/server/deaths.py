"""Which of the server's threads have died, when do their successors start, and is it a crash loop?

A death is a thread's own last act, so it is known at once. A lost device is no death of a thread: the
process ends, and nobody succeeds. One book for all threads of a pipeline.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from perfkit.clock import NS_PER_S, Clock
from perfkit.records import EndState
from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.restarts import LOOP_DEATHS, WINDOW_NS, Restarts
from perfkit.serving.server.job import Job
from perfkit.serving.server.rejections import REJECTIONS
from perfkit.serving.server.stages import describe

LOST = Rejected(reason="device_lost", retry_after_s=1.0)
FEW_WORKERS = Rejected(reason="few_workers", retry_after_s=1.0)
_log = logging.getLogger("perfkit.server")


class Deaths:
    """The book. Safe for any thread."""

    def __init__(self, clock: Clock, on_lost: Callable[[str], None], least_workers: int = 0) -> None:
        self.count = 0
        self._clock = clock
        self._on_lost = on_lost
        self._least_workers = least_workers
        self._posts: Counter[str] = Counter()  # of model workers, by crew; complete before the first thread starts
        self._changed = threading.Condition()  # guards everything below, and count
        self._restarts = Restarts()
        self._loop_until_ns = 0
        self._vacant: dict[str, str] = {}  # name of the post -> its crew
        self._is_closing = False

    @property
    def vacant(self) -> int:
        """Posts of model workers that nobody holds at present."""
        return len(self._vacant)

    @property
    def is_closing(self) -> bool:
        """Whether the pipeline ends: successors finish what is left, and wait for nothing."""
        return self._is_closing

    def record(self, name: str, error: BaseException) -> int | None:
        """A thread dies of an error; the instant from which its successor may start, None when there is to be none."""
        if isinstance(error, DeviceLost):
            self._on_lost(describe(error))
            return None
        with self._changed:
            now_ns = self._clock.now_ns()
            self.count += 1
            pause_ns = self._restarts.died(now_ns)
            self._loop_until_ns = self._restarts.looping_until_ns(now_ns)
        _log.critical("thread %s died; it is replaced", name, exc_info=error)
        if self._loop_until_ns:
            seconds = WINDOW_NS // NS_PER_S
            _log.critical("%d threads died within %d s; no requests are taken until fewer did", LOOP_DEATHS, seconds)
        return now_ns if self._is_closing else now_ns + pause_ns

    def crash_loop(self) -> Rejected | None:
        """What to tell new requests while so many threads die that nobody should wait for them."""
        until_ns = self._loop_until_ns
        if not until_ns or (left_ns := until_ns - self._clock.now_ns()) <= 0:
            return None
        return Rejected(reason="crash_loop", retry_after_s=left_ns / NS_PER_S)

    def unfit(self) -> Rejected | None:
        """Why a readiness probe should be told no: a crash loop, or fewer workers than there have to be."""
        posts = self._posts.total()
        has_few = posts - len(self._vacant) < min(posts, self._least_workers)
        return self.crash_loop() or (FEW_WORKERS if has_few else None)

    def leaves_nobody(self, crew: str) -> bool:
        """Whether a crash loop has left a crew no model worker at all."""
        with self._changed:
            has_nobody = Counter(self._vacant.values())[crew] >= self._posts[crew]
        return has_nobody and self.crash_loop() is not None

    def employ(self, crew: str) -> None:
        """A crew has one more post for a model worker."""
        self._posts[crew] += 1

    def posts(self) -> list[str]:
        """The names of all posts of model workers, in the order of their crews and numbers."""
        return [f"{crew}-{number}" for crew, count in self._posts.items() for number in range(count)]

    def left_ns(self, starts_ns: int) -> int:
        """The time until an instant; 0 when it has passed."""
        return max(0, starts_ns - self._clock.now_ns())

    def await_turn(self, starts_ns: int) -> bool:
        """Block a successor until its time, or until the pipeline closes; False when it closes in a crash loop."""
        with self._changed:
            while not self._is_closing and self._clock.now_ns() < starts_ns:
                self._clock.wait(self._changed, starts_ns)
        return not (self._is_closing and self.crash_loop())

    def vacate(self, name: str, crew: str) -> None:
        """A model worker's post is vacant."""
        with self._changed:
            self._vacant[name] = crew

    def fill(self, name: str) -> None:
        """Somebody works at a model worker's post."""
        if name in self._vacant:
            with self._changed:
                self._vacant.pop(name, None)

    def close(self) -> None:
        """No successor waits any longer."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()


def give_up(jobs: Sequence[Job], why: BaseException | Rejected) -> None:
    """End jobs whose thread died of an error, or which nobody is left to work on; who has ended keeps that end."""
    if isinstance(why, DeviceLost):
        why = LOST
    if isinstance(why, Rejected):
        for job in jobs:
            job.retry_after_s = why.retry_after_s
            job.end(EndState.REJECTED, why.reason, REJECTIONS[why.reason])
        return
    kind, text = type(why).__name__, describe(why)
    for job in jobs:
        job.end(EndState.FAILED, "worker_died", f"the thread that worked on it died of {kind}: {text}; send it again")
