"""Where do threads that come and go get their names, and who knows when all have left?"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable

from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.deaths import Deaths
from perfkit.serving.server.preemption import renounce_preemption


class Roster:
    """Numbered places for threads. Safe for any thread.

    A new thread gets the lowest free number, so that the names of a thousand short lives are as few as
    there were threads at once.
    """

    def __init__(self, name: str, deaths: Deaths) -> None:
        self._name = name  # of every thread, before its number
        self._deaths = deaths
        self._lock = threading.Lock()  # guards everything below
        self._free: list[int] = []  # a heap
        self._threads: list[threading.Thread] = []  # the latest of each number
        self._current = 0
        self._started = 0

    def start(self, work: Callable[[str], None]) -> None:
        """Start a named thread that does `work` (handed its name) and ends; RuntimeError when the system has none."""
        with self._lock:
            number = heapq.heappop(self._free) if self._free else len(self._threads)
            thread = threading.Thread(
                target=self._live, args=(number, work), name=f"{self._name}-{number}", daemon=True
            )
            if number == len(self._threads):
                self._threads.append(thread)
            else:
                self._threads[number] = thread
            self._current += 1
            self._started += 1
        try:
            thread.start()
        except RuntimeError:
            self._leave(number)
            raise

    def join(self) -> None:
        """Wait until every thread has ended, and whoever a dying one has started meanwhile; nobody else may."""
        joined: list[threading.Thread] = []
        while joined != self._threads:  # a dying thread starts another one before it ends
            joined = list(self._threads)
            for thread in joined:
                if thread.ident is not None:  # else the system refused to start it
                    thread.join()

    def headcount(self) -> Headcount:
        """Threads now, the most at once, and all that were ever started."""
        with self._lock:
            return Headcount(current=self._current, peak=len(self._threads), started=self._started)

    def _live(self, number: int, work: Callable[[str], None]) -> None:
        renounce_preemption()
        try:
            work(f"{self._name}-{number}")
        except BaseException as error:  # what the thread held has been given up by then
            self._deaths.record(f"{self._name}-{number}", error)
        finally:
            self._leave(number)

    def _leave(self, number: int) -> None:
        with self._lock:
            self._current -= 1
            heapq.heappush(self._free, number)
