"""When, in host time, did something happen on the GPU? An anchor ties the two clocks together.

An anchor is an event on an idle stream between two readings of the host's clock: it happened in the
middle, give or take half the distance. The best of a few tries is taken, and taken anew when it is old,
since the clocks drift apart and since an elapsed time is a float32 of milliseconds, exact to 0.1 µs for
a second and to 1 µs for ten.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from torch import cuda

from perfkit.clock import NS_PER_S, Clock

ANCHOR_AGE_NS = NS_PER_S
TRIES = 5
DRIFT = 100e-6  # twice what a quartz deviates by, and as much again for a host clock that is being corrected
_NS_PER_MS = 1_000_000
_cuda: Any = cuda  # whose classes have no types


class Anchor(NamedTuple):
    """An event whose host instant is known, and by how much it may be off."""

    event: Any
    host_ns: int
    error_ns: int

    def error_at_ns(self, now_ns: int) -> int:
        """By how much an instant of now, told from this anchor, may be off."""
        return self.error_ns + round((now_ns - self.host_ns) * DRIFT)


class HostTime:
    """The anchor in force. Safe for any thread."""

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.now_ns
        self._stream = _cuda.Stream()
        self._renewing = threading.Lock()  # held by the thread that looks for a new anchor; the others use the old one
        self._anchor = self._best_of(TRIES)

    def renew_if_old(self) -> None:
        """Take a new anchor once the one in force is old. Blocks for some ten microseconds then."""
        if self._now_ns() - self._anchor.host_ns < ANCHOR_AGE_NS or not self._renewing.acquire(blocking=False):
            return
        try:
            found, now_ns = self._best_of(TRIES), self._now_ns()
            # On a host that let none of the tries through at once, the old anchor may still be the better one.
            if found.error_at_ns(now_ns) <= self._anchor.error_at_ns(now_ns):
                self._anchor = found
        finally:
            self._renewing.release()

    def instant_ns(self, event: Any) -> int:
        """When a torch event that has happened did so, in host nanoseconds."""
        anchor = self._anchor
        elapsed_ms: float = anchor.event.elapsed_time(event)
        return anchor.host_ns + round(elapsed_ms * _NS_PER_MS)

    def error_ns(self) -> int:
        """By how much instants of now may be off, at most."""
        return self._anchor.error_at_ns(self._now_ns())

    def _best_of(self, tries: int) -> Anchor:
        return min((self._take() for _ in range(tries)), key=lambda anchor: anchor.error_ns)

    def _take(self) -> Anchor:
        event = _cuda.Event(enable_timing=True)
        before_ns = self._now_ns()
        event.record(self._stream)
        event.synchronize()
        after_ns = self._now_ns()
        return Anchor(event, (before_ns + after_ns) // 2, (after_ns - before_ns + 1) // 2)
