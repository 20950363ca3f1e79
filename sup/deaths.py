"""Which of the server's threads have died, when does the successor start, and is it a crash loop?

One book for a group of posts that do the same work. A death is a thread's own last act, so it is
known at once. A lost device is no death of a thread: the process ends, and there are no successors.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from perfkit.clock import Clock
from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.scheduling.crashes import MOST, WITHIN_S, CrashLoop
from perfkit.serving.server.stages import describe

_log = logging.getLogger("perfkit.server")


class Deaths:
    """The book. Safe for any thread. `on_change` is called after every death and every return to service."""

    def __init__(self, clock: Clock, on_change: Callable[[], None], on_lost: Callable[[str], None]) -> None:
        self.count = 0
        self._clock = clock
        self._on_change = on_change
        self._on_lost = on_lost
        self._changed = threading.Condition()  # guards everything below, and count
        self._crashes = CrashLoop()
        self._vacant: set[str] = set()
        self._is_closing = False

    @property
    def vacant(self) -> int:
        """Posts whose thread has died and whose successor does not work yet."""
        return len(self._vacant)

    @property
    def is_looping(self) -> bool:
        """Whether so many threads died lately that the successors have to wait."""
        with self._changed:
            return self._crashes.is_looping(self._clock.now_ns())

    def record(self, name: str, error: BaseException) -> int | None:
        """A thread dies of an error; the instant from which its successor may start, None when there is to be none."""
        if isinstance(error, DeviceLost):
            self._on_lost(describe(error))
            return None
        with self._changed:
            now_ns = self._clock.now_ns()
            self.count += 1
            self._vacant.add(name)
            starts_ns = self._crashes.died(now_ns)
            is_looping = self._crashes.is_looping(now_ns)
        _log.critical("thread %s died; it is replaced", name, exc_info=error)
        if is_looping:
            _log.critical("%d threads died within %g s: no requests are taken for a while", MOST, WITHIN_S)
        self._on_change()
        return starts_ns

    def await_turn(self, starts_ns: int) -> bool:
        """Block a successor until its time; at a close it starts at once, or not at all in a crash loop."""
        with self._changed:
            while not self._is_closing and self._clock.now_ns() < starts_ns:
                self._clock.wait(self._changed, starts_ns)
            return not (self._is_closing and self._crashes.is_looping(self._clock.now_ns()))

    def serves(self, name: str) -> None:
        """A thread is at work."""
        if name in self._vacant:
            with self._changed:
                self._vacant.discard(name)
            self._on_change()

    def close(self) -> None:
        """No successor waits any longer."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
