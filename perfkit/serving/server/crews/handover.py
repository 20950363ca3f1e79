"""How does an event loop hand a blocking call to a thread, and learn that it is done?

An executor like the standard library's, for one kind of work: a batch. Its threads are workers, so they
are warm, have stations and end as all workers do.
"""

from __future__ import annotations

import queue
from concurrent.futures import Future

from perfkit.clock import NS_PER_S
from perfkit.serving.server.dispatcher import Taken


class Place:
    """Where one worker stands, and what it is at."""

    __slots__ = ("doing",)

    def __init__(self) -> None:
        self.doing: Future[None] | None = None


class Handover:
    """Batches on their way from the loop to the workers. Safe for any thread."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[tuple[Future[None], Taken] | None] = queue.SimpleQueue()

    def submit(self, taken: Taken) -> Future[None]:
        """Hand a batch over; the future is done when the batch is."""
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # whoever stops to wait for it does not stop it
        self._inbox.put((done, taken))
        return done

    def close(self, workers: int) -> None:
        """Let so many workers leave once the inbox is empty."""
        for _ in range(workers):
            self._inbox.put(None)

    def new_seat(self) -> Place:
        """What one worker keeps its place by."""
        return Place()

    def leave(self, seat: Place) -> None:
        """The worker is done with its batch, or has died over it and given it up."""
        if seat.doing is not None:
            seat.doing.set_result(None)
            seat.doing = None

    def take(self, seat: Place, patience_ns: int | None = None) -> Taken | None:
        """The worker is done with its batch and blocks for the next one; None = leave, or nothing came for so long."""
        self.leave(seat)
        try:
            handed = self._inbox.get(timeout=None if patience_ns is None else patience_ns / NS_PER_S)
        except queue.Empty:
            return None
        if handed is None:
            return None
        seat.doing, taken = handed
        return taken
