"""How does a stage get threads of its own? A fixed pool of named threads over one queue."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from perfkit.serving.devices.device import Device

Work = TypeVar("Work")


class Pool(Generic[Work]):
    """Fixed threads that apply one function to whatever is put. Safe for any thread.

    The inbox is bounded by admission: nothing is put that was not admitted. The function must not
    raise; what the model's code raises is caught where it is called.
    """

    def __init__(self, name: str, threads: int, apply: Callable[[Work], None], device: Device) -> None:
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._apply = apply
        self._device = device
        self._threads = [
            threading.Thread(target=self._live, name=f"{name}-{index}", daemon=True) for index in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def await_ready(self) -> None:
        """Threads are ready as soon as they are started."""

    def put(self, work: Work) -> None:
        """Hand work to the next free thread."""
        self._inbox.put(work)

    def close(self) -> None:
        """Finish what was put, then end the threads."""
        for _ in self._threads:
            self._inbox.put(None)
        for thread in self._threads:
            thread.join()

    def _live(self) -> None:
        # A stage may use the model's library too: without this, one thread's call would take all cores.
        self._device.enter_worker(1)
        while (work := self._inbox.get()) is not None:
            self._apply(work)
        self._device.leave_worker()
