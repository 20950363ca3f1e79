"""What time is it, and how does a thread wait? The only module that calls `time`.

Everything that stamps or waits takes a `Clock`. `RealClock` reads CLOCK_MONOTONIC, which all
processes of a host share; `ManualClock` stands still until a test moves it.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Any, Protocol

NS_PER_S = 1_000_000_000


class Waitable(Protocol):
    """What a thread rests on: `threading.Condition`, or what is used in the same way."""

    def wait(self, timeout: float | None = None, /) -> object:
        """Give the lock up until notified, or for so many seconds."""

    def notify_all(self) -> None:
        """Wake who waits; the caller holds the lock."""

    def __enter__(self) -> object: ...

    def __exit__(self, *raised: Any) -> object: ...


class Clock(Protocol):
    """Monotonic nanoseconds, and the two ways in which a thread may wait."""

    def now_ns(self) -> int:
        """Nanoseconds of the host's monotonic clock."""

    def wait(self, condition: Waitable, until_ns: int | None) -> None:
        """Wait on a condition that the caller holds: until notified, or until an instant."""

    def sleep_until(self, until_ns: int) -> None:
        """Block the calling thread until an instant; returns at once when it has passed."""


class RealClock:
    """CLOCK_MONOTONIC. Thread-safe: it holds no state."""

    now_ns = staticmethod(time.monotonic_ns)

    def wait(self, condition: Waitable, until_ns: int | None) -> None:
        """Wait until notified or until an instant; a notice may come without cause, as for any condition."""
        if until_ns is None:
            condition.wait()
            return
        remaining_ns = until_ns - time.monotonic_ns()
        if remaining_ns > 0:
            condition.wait(remaining_ns / NS_PER_S)

    def sleep_until(self, until_ns: int) -> None:
        """Block the calling thread until an instant; returns at once when it has passed."""
        remaining_ns = until_ns - time.monotonic_ns()
        if remaining_ns > 0:
            time.sleep(remaining_ns / NS_PER_S)


class ManualClock:
    """Time moves only by `advance`; every waiter looks again after each move. Thread-safe."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns
        self._moved = threading.Condition()  # guards _now_ns and _waiters
        self._waiters: list[Waitable] = []

    def now_ns(self) -> int:
        """Nanoseconds as of the last `advance`."""
        return self._now_ns

    def advance(self, by_ns: int) -> None:
        """Move time forward and wake everything that waits on this clock."""
        with self._moved:
            self._now_ns += by_ns
            waiters = list(self._waiters)
            self._moved.notify_all()
        for condition in waiters:
            with condition:
                condition.notify_all()

    def wait(self, condition: Waitable, until_ns: int | None) -> None:
        """Wait until notified, or until time has been moved at all; returns at once when the instant has passed."""
        with self._moved:  # looked at and registered in one go, so that no move falls in between
            if until_ns is not None and self._now_ns >= until_ns:
                return
            self._waiters.append(condition)
        try:
            condition.wait()
        finally:
            with self._moved:
                self._waiters.remove(condition)

    def sleep_until(self, until_ns: int) -> None:
        """Block the calling thread until time has been moved to an instant."""
        with self._moved:
            self._moved.wait_for(lambda: self._now_ns >= until_ns)


REAL_CLOCK = RealClock()


def calendar_now() -> str:
    """The calendar's present moment in UTC, as ISO 8601: for naming and dating runs, never for measuring."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


epoch_ns = time.time_ns
"""Nanoseconds of the calendar's clock: only to place what somebody else stamped with it."""


def process_cpu_ns_of(pid: int) -> int:
    """CPU time so far of any process of this host, as exact as one's own; 0 when it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # Linux: how the number of a process's CPU clock is made
    except OSError:
        return 0


thread_cpu_ns = time.thread_time_ns
process_cpu_ns = time.process_time_ns
