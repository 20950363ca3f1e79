"""How many requests may one call of the model take at present? What was set, or what the device's memory holds."""

from __future__ import annotations

import logging
import threading

from perfkit.clock import Clock
from perfkit.serving.scheduling.batch_cap import BatchCap

_log = logging.getLogger("perfkit.server")


class Room:
    """The batch cap that all workers of a pipeline share. Safe for any thread."""

    def __init__(self, most: int, clock: Clock) -> None:
        self.most_at_once = most
        self.is_settled = True
        self._clock = clock
        self._lock = threading.Lock()  # guards the cap; the two attributes are copies to read without it
        self._cap = BatchCap(most)

    def ran_out(self, size: int) -> None:
        """A call with so many requests did not fit the device's memory."""
        with self._lock:
            self._cap.ran_out(size, self._clock.now_ns())
            self._copy()
        _log.warning("a batch of %d does not fit the device's memory; at most %d from here on", size, self.most_at_once)

    def fitted(self, size: int) -> None:
        """A call with so many requests did fit; worth telling only while the room is not settled."""
        with self._lock:
            self._cap.fitted(size, self._clock.now_ns())
            self._copy()

    def _copy(self) -> None:
        self.most_at_once, self.is_settled = self._cap.limit, self._cap.is_settled
