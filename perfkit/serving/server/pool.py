"""How does a stage get threads of its own? A fixed pool of named threads over one queue."""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.device import Device
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server.deaths import Deaths
from perfkit.serving.server.post import Post

Work = TypeVar("Work")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Duty(Generic[Work]):
    """What a pool does with its work, and what becomes of work that its thread died over or that nobody is left for."""

    apply: Callable[[Work], None]
    give_up: Callable[[Work, BaseException | Rejected], None]


class Pool(Generic[Work]):
    """Fixed threads that apply one function to whatever is put. Safe for any thread.

    The inbox is bounded by admission: nothing is put that was not admitted. What the model's code raises
    is caught where it is called; a thread that dies of anything else is replaced.
    """

    def __init__(self, name: str, threads: int, duty: Duty[Work], device: Device, deaths: Deaths) -> None:
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._duty = duty
        self._device = device
        self._deaths = deaths
        self._lock = threading.Lock()  # guards _at_work
        self._at_work = 0
        self._posts = [Post(f"{name}-{index}", self._work, self._await_turn, deaths) for index in range(threads)]

    def start(self) -> None:
        """Start the threads."""
        for post in self._posts:
            post.start()

    def await_ready(self) -> None:
        """Threads are ready as soon as they are started."""

    def put(self, work: Work) -> None:
        """Hand work to the next free thread."""
        self._inbox.put(work)

    def close(self) -> None:
        """Finish what was put, then end the threads."""
        for _ in self._posts:
            self._inbox.put(None)
        for post in self._posts:
            post.join()

    def _work(self) -> None:
        # A stage may use the model's library too: without this, one thread's call would take all cores.
        self._device.enter_worker(1)
        self._count(1)
        try:
            while (work := self._inbox.get()) is not None:
                self._do(work)
        finally:
            self._count(-1)
            self._device.leave_worker()

    def _do(self, work: Work) -> None:
        try:
            self._duty.apply(work)
        except BaseException as error:
            self._duty.give_up(work, error)
            raise

    def _count(self, change: int) -> None:
        with self._lock:
            self._at_work += change

    def _await_turn(self, starts_ns: int) -> bool:
        """Block until a successor may start. Where a crash loop has left no thread, it turns away what comes.

        False when the pool closes in a crash loop: nothing is left to do then.
        """
        deaths = self._deaths
        while not self._at_work and (why := deaths.crash_loop()):
            left_ns = deaths.left_ns(starts_ns)
            try:
                work = self._inbox.get(timeout=None if deaths.is_closing else left_ns / NS_PER_S)
            except queue.Empty:
                break
            if work is None:  # the pool is closed, and nothing was put after this
                return False
            self._duty.give_up(work, why)
        return deaths.await_turn(starts_ns)
