"""How long until the queue is empty, and when will an item at the end of it leave?

The estimates behind Retry-After and behind rejecting what would come too late.
"""

from __future__ import annotations

import math

from perfkit.clock import NS_PER_S

_WEIGHT = 0.1  # of the newest interval in the moving mean: about the last ten batches
_LEAST_S = 0.1  # an overloaded service gains nothing from clients that return sooner
_MOST_S = 60.0


class DrainRate:
    """Moving means of the time from one batch to the next: by item, and by whole batch. Pure."""

    __slots__ = ("_at_once", "_had_backlog", "_last_ns", "_per_batch_ns", "_per_item_ns")

    def __init__(self) -> None:
        self._at_once = 1  # how many left together when more stayed behind: a whole batch
        self._had_backlog = False
        self._last_ns = 0
        self._per_batch_ns = 0.0
        self._per_item_ns = 0.0

    def left(self, count: int, now_ns: int, backlog: int) -> None:
        """`count` items left at `now_ns`, `backlog` stay. An interval that began without one may hold idle time."""
        if self._had_backlog:
            interval_ns = now_ns - self._last_ns
            newest = interval_ns / count
            self._per_item_ns += _WEIGHT * (newest - self._per_item_ns) if self._per_item_ns else newest
            self._per_batch_ns += _WEIGHT * (interval_ns - self._per_batch_ns) if self._per_batch_ns else interval_ns
        self._had_backlog = backlog > 0
        if backlog:
            self._at_once = count
        self._last_ns = now_ns

    def predict_s(self, backlog: int) -> float:
        """Seconds until `backlog` items are gone at the present pace."""
        return min(_MOST_S, max(_LEAST_S, backlog * self._per_item_ns / NS_PER_S))

    def predict_leave_ns(self, ahead: int, now_ns: int) -> int:
        """When an item with `ahead` items before it leaves, if whole batches go on leaving at the present pace.

        Errs on the early side: without a backlog the next batch may leave now, and before anything was
        learnt everything may.
        """
        interval_ns = self._per_batch_ns
        next_ns = max(now_ns, self._last_ns + math.floor(interval_ns)) if self._had_backlog else now_ns
        return next_ns + math.floor(ahead // self._at_once * interval_ns)
