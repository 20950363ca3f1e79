"""Who tells the requests at the door that they have waited too long, and when?"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Sequence

from perfkit.serving.server.dispatcher import Dispatcher
from perfkit.serving.server.outbox import LoopExit


class DoorWatch:
    """One timer for the doors of all queues, set for whoever is due first. For the event loop's thread."""

    def __init__(self, outbox: LoopExit, dispatchers: Sequence[Dispatcher]) -> None:
        self._outbox = outbox
        self._dispatchers = dispatchers
        self._next_ns: int | None = None  # when it looks next
        self._timer: TimerHandle | None = None  # that look

    def look_at(self, until_ns: int | None) -> None:
        """Look at the doors at that instant, unless a look is due before."""
        if until_ns is None or (self._next_ns is not None and self._next_ns <= until_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._next_ns = until_ns
        self._timer = self._outbox.call_at(until_ns, self._look)

    def _look(self) -> None:
        self._next_ns = None
        instants = [dispatcher.turn_away() for dispatcher in self._dispatchers]
        self.look_at(min((instant for instant in instants if instant is not None), default=None))
