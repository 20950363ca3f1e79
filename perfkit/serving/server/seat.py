"""What does a worker thread rest on while there is nothing for it? A condition with room for one.

`threading.Condition` makes a lock for every wait and keeps a queue of waiters. A seat has one waiter,
so that one lock, made once, does; a worker rests after nearly every batch of a service that is not full.
"""

from __future__ import annotations

import threading


class Seat:
    """As `threading.Condition` over a lock that the caller holds, for one waiting thread."""

    __slots__ = ("_bell", "_guard", "_is_taken")

    def __init__(self, guard: threading.Lock) -> None:
        self._guard = guard  # guards _is_taken
        self._is_taken = False
        self._bell = threading.Lock()  # held, except between a notice and its waiter's waking up
        self._bell.acquire()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Give the lock up until notified, or for so long; whether notified."""
        self._is_taken = True
        self._guard.release()
        try:
            rang = self._bell.acquire(timeout=-1 if timeout_s is None else timeout_s)
        finally:
            self._guard.acquire()
        if not rang and not self._is_taken:  # the notice came between the time-out and the lock
            rang = self._bell.acquire()
        self._is_taken = False
        return rang

    def notify(self) -> None:
        """Wake the waiter, if there is one that nobody has woken yet."""
        if self._is_taken:
            self._is_taken = False
            self._bell.release()

    notify_all = notify

    def __enter__(self) -> None:
        self._guard.acquire()

    def __exit__(self, *raised: object) -> None:
        self._guard.release()
