"""How many requests fit the device's memory in one call, when the size that was set does not?

Pure: it is handed the time. A call that ran out of memory halves the cap; after a pause without
another one a full call doubles it again, and when that fails the next pause is twice as long.
"""

from __future__ import annotations

from perfkit.clock import NS_PER_S

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 600.0


class BatchCap:
    """The cap between 1 and the size that was set. Not thread-safe."""

    def __init__(self, most: int, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self.most = most
        self.limit = most
        self.is_settled = True  # nothing is to be learnt from a call that fits
        self._first_pause_ns = round(first_pause_s * NS_PER_S)
        self._pause_ns = self._first_pause_ns
        self._probe_ns = 0
        self._is_probing = False

    def ran_out(self, size: int, now_ns: int) -> None:
        """A call with so many requests did not fit."""
        if self._is_probing and size >= self.limit:
            self._pause_ns = min(2 * self._pause_ns, round(LONGEST_PAUSE_S * NS_PER_S))
        self._is_probing = self.is_settled = False
        self.limit = max(1, min(self.limit, size // 2))
        self._probe_ns = now_ns + self._pause_ns

    def fitted(self, size: int, now_ns: int) -> None:
        """A call with so many requests did fit; once the pause is over, more may be tried."""
        if size < self.limit:
            return
        if self._is_probing:  # the larger call has proved itself
            self._is_probing = False
            self._pause_ns = self._first_pause_ns
            self._probe_ns = now_ns + self._pause_ns
        self.is_settled = self.limit == self.most
        if not self.is_settled and now_ns >= self._probe_ns:
            self.limit = min(self.most, 2 * self.limit)
            self._is_probing = True
