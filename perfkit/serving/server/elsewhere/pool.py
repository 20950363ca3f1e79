"""How does a stage get processes of its own? Threads over one queue, each with a child to ask."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from perfkit.serving.server.elsewhere.outpost import Outpost

Work = TypeVar("Work")
_log = logging.getLogger("perfkit.server")


class ProcessPool(Generic[Work]):
    """As `Pool`, but each thread has an outpost to ask, and waits for its child with the GIL released."""

    def __init__(
        self,
        outposts: Sequence[Outpost],
        apply: Callable[[Outpost, Work], None],
        give_up: Callable[[Work, BaseException], None],
    ) -> None:
        self.outposts = outposts
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._apply = apply
        self._give_up = give_up
        self._threads = [
            threading.Thread(target=self._live, args=(outpost,), name=outpost.name, daemon=True) for outpost in outposts
        ]

    def start(self) -> None:
        """Start the children; `await_ready` tells how it went."""
        for outpost in self.outposts:
            outpost.start()

    def await_ready(self) -> None:
        """Wait until every child has loaded its model, and take up work; raises what kept one from it."""
        for outpost in self.outposts:
            outpost.ready.result()
        for thread in self._threads:
            thread.start()

    def put(self, work: Work) -> None:
        """Hand work to the next free child."""
        self._inbox.put(work)

    def close(self) -> None:
        """Finish what was put, then end the threads and the children."""
        for _ in self._threads:
            self._inbox.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # never started when a child could not be
                thread.join()
        for outpost in self.outposts:
            outpost.close()

    def _live(self, outpost: Outpost) -> None:
        while True:
            outpost.await_child()  # before it takes work, which another child could do meanwhile
            work = self._inbox.get()
            if work is None:
                return
            try:
                self._apply(outpost, work)
            except BaseException as error:  # nothing of the thread's own can have broken: it goes on
                _log.critical("%s could not ask its process", outpost.name, exc_info=error)
                self._give_up(work, error)
