"""Where are a request's instants kept while it lives, without a lock or an allocation?

A `Ledger` is a preallocated array of int64 rows. A row has one owner at a time (the thread that
holds the request), so a stamp is one store: `cells[row + COLUMN] = now_ns()`. Closed rows are
numbered; a reader asks for all since a number and learns how many were overwritten unread.
Standard library only.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable

from perfkit.clock import REAL_CLOCK, Clock, thread_cpu_ns

_NUMBER = 0  # first column of every row: its closing number + 1; 0 while the row is open or unused


def _no_time() -> int:
    return 0


class Ledger:
    """Rows of int64 cells. Open and close from one thread; stamp from the row's owner; read from any."""

    def __init__(self, columns: tuple[str, ...], capacity: int, *, stamps: bool = True) -> None:
        self.columns = ("number", *columns)
        self.width = len(self.columns)
        self.cells = array("q", [0]) * (self.width * capacity)
        self.clock: Clock = REAL_CLOCK  # tells the time also when stamps are off
        self.now_ns: Callable[[], int] = REAL_CLOCK.now_ns if stamps else _no_time
        self.cpu_ns: Callable[[], int] = thread_cpu_ns if stamps else _no_time  # of the calling thread
        self.closed = 0
        self._capacity = capacity
        self.stamps = stamps
        self._blank = array("q", [0]) * self.width
        self._free = deque(range(0, self.width * capacity, self.width))
        self._order = array("q", [0]) * capacity

    @property
    def in_use(self) -> int:
        """Rows that were opened and not closed."""
        return len(self.cells) // self.width - len(self._free)

    def open(self) -> int:
        """Offset of a blank row. The least recently closed one, so that readers have time."""
        if not self._free:  # more requests in flight than rows: admission bounds them, the capacity only what is kept
            self.cells.extend(self._blank)
            return len(self.cells) - self.width
        row = self._free.popleft()
        self.cells[row : row + self.width] = self._blank
        return row

    def close(self, row: int) -> None:
        """The row is complete: readers may have it, and later rows may overwrite it."""
        if self.stamps:
            self.cells[row] = self.closed + 1
            self._order[self.closed % self._capacity] = row
            self.closed += 1  # last: a reader that sees the number finds the row
        self._free.append(row)

    def read(self, since: int) -> tuple[array[int], int]:
        """Cells of every closed row from number `since` on, and how many of them were lost.

        Rows that a writer reuses during the copy show another number and count as lost.
        """
        until = self.closed
        first = max(since, until - self._capacity)
        kept: array[int] = array("q")
        lost = first - since if since < first else 0
        width, cells = self.width, self.cells
        for number in range(first, until):
            row = self._order[number % self._capacity]
            copy = cells[row : row + width]
            if copy[_NUMBER] == number + 1:
                kept.extend(copy)
            else:
                lost += 1
        return kept, lost


class SharedLedger(Ledger):
    """A ledger whose rows several threads open and close: once a batch, so a lock costs nothing that counts."""

    def __init__(self, columns: tuple[str, ...], capacity: int, *, stamps: bool = True) -> None:
        super().__init__(columns, capacity, stamps=stamps)
        self._lock = threading.Lock()  # guards closed, _free and _order

    def open(self) -> int:
        """As in `Ledger`, from any thread."""
        with self._lock:
            return Ledger.open(self)  # cheaper than by super(), and once a batch

    def close(self, row: int) -> None:
        """As in `Ledger`, from any thread."""
        with self._lock:
            Ledger.close(self, row)
