"""How does a thread's work go on when the thread dies? A post keeps its name; its thread has successors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from perfkit.serving.server.deaths import Deaths
from perfkit.serving.server.preemption import renounce_preemption

_log = logging.getLogger("perfkit.server")


class Post:
    """A named thread that runs `work` until it returns, and is replaced when that raises.

    Whatever the thread held has been given an end by then. A successor first calls `await_turn` with the
    instant from which it may start, and goes without work when that says so. It is a new thread, so that
    nothing thread-local of the dead one stays.
    """

    def __init__(self, name: str, work: Callable[[], None], await_turn: Callable[[int], bool], deaths: Deaths) -> None:
        self.name = name
        self.started = 0  # threads that had the post, the present one included
        self._work = work
        self._await_turn = await_turn
        self._deaths = deaths
        self._tenure = _Tenure()
        self._tenure.thread = self._new_thread(self._tenure, 0)

    def start(self) -> None:
        """Start the first thread."""
        self._tenure.thread.start()

    def join(self) -> None:
        """Wait until the work has returned, in whichever thread; at once when none was started."""
        tenure: _Tenure | None = self._tenure
        while tenure is not None and tenure.thread.ident is not None:
            tenure.thread.join()
            tenure = tenure.heir  # named, and started, before the thread ended

    def _new_thread(self, tenure: _Tenure, starts_ns: int) -> threading.Thread:
        return threading.Thread(target=self._live, args=(tenure, starts_ns), name=self.name, daemon=True)

    def _live(self, tenure: _Tenure, starts_ns: int) -> None:
        renounce_preemption()
        while not starts_ns or self._await_turn(starts_ns):
            next_ns = self._work_once()
            if next_ns is None or self._hand_over(tenure, next_ns):
                return
            starts_ns = next_ns

    def _work_once(self) -> int | None:
        """None when there is nothing more to do, else the instant from which the work may be taken up again."""
        try:
            self._work()
        except BaseException as error:
            return self._deaths.record(self.name, error)
        return None

    def _hand_over(self, tenure: _Tenure, starts_ns: int) -> bool:
        """Whether a new thread has the post; where the system gives none, the old one takes it up again."""
        heir = tenure.heir = _Tenure()
        heir.thread = self._new_thread(heir, starts_ns)
        try:
            heir.thread.start()
        except RuntimeError as error:
            tenure.heir = None
            _log.error("no new thread for %s (%s); the old one goes on", self.name, error)
            return False
        self._tenure = heir  # or one that came before it: `join` goes on from any of them
        return True


class _Tenure:
    """One thread's time at a post, and who came after it."""

    thread: threading.Thread
    heir: _Tenure | None = None
