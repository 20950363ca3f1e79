"""How do finished jobs get from worker threads back to the event loop? One wake-up for many.

The wake-up is a write to an eventfd that the loop watches. Unlike `call_soon_threadsafe` it gives the GIL up
for the moment of the write, so that the loop that it wakes can run at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.serving.server.job import Job

_log = logging.getLogger("perfkit.server")


class Exit(Protocol):
    """Where finished jobs leave, seen from the thread that has finished them."""

    def put(self, jobs: Iterable[Job]) -> None:
        """Hand jobs over; any thread may."""


class LoopExit(Exit, Protocol):
    """An exit that leads to the event loop."""

    def call_at(self, at_ns: int, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Have the loop call back at an instant; from the loop's own thread."""


class Counted:
    """An exit that tells which jobs leave, before they do."""

    def __init__(self, exits: LoopExit, tell: Callable[[Sequence[Job]], None]) -> None:
        self._exits = exits
        self._tell = tell

    def put(self, jobs: Iterable[Job]) -> None:
        """Tell, then hand over."""
        leaving = list(jobs)
        self._tell(leaving)
        self._exits.put(leaving)

    def call_at(self, at_ns: int, call: Callable[[], None]) -> asyncio.TimerHandle:
        """As the loop's own exit does."""
        return self._exits.call_at(at_ns, call)


class Outbox:
    """Finished jobs on their way to the loop. Any thread puts; the loop delivers in order. Close it with the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: deque[Job] = deque()  # append and popleft are atomic
        self._is_armed = False  # written without a lock: at worst one wake-up too many
        self._bell = os.eventfd(0)
        loop.add_reader(self._bell, self._answer_bell)

    def put(self, jobs: Iterable[Job]) -> None:
        """Hand jobs over; the loop is woken once until it has emptied the box."""
        self._jobs.extend(jobs)
        if not self._is_armed:
            self._is_armed = True
            os.eventfd_write(self._bell, 1)

    def call_at(self, at_ns: int, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Have the loop call back at an instant; from the loop's own thread."""
        return self._loop.call_later(max(0, at_ns - REAL_CLOCK.now_ns()) / NS_PER_S, call)

    def close(self) -> None:
        """Nobody puts any more; from the loop's own thread."""
        self._loop.remove_reader(self._bell)
        os.close(self._bell)

    def _answer_bell(self) -> None:
        os.eventfd_read(self._bell)  # does not block: only the loop reads, and only when there is something
        self._deliver()

    def _deliver(self) -> None:
        self._is_armed = False  # before the first popleft: what comes later arms it again
        jobs = self._jobs
        while jobs:
            job = jobs.popleft()
            try:
                job.receiver.job_done(job)
            except Exception:  # one answer that cannot be written must not keep the others
                _log.exception("cannot deliver a finished request")
