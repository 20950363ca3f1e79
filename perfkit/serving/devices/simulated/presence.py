"""How many requests are in the simulated service right now?"""

from __future__ import annotations

import itertools


class Presence:
    """Requests in flight. Thread-safe without a lock, because leaving may happen in a finaliser."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._present: set[int] = set()  # add, discard and len are single steps of the interpreter

    def enter(self) -> Visit:
        """One more request; it leaves by `leave`, or when nobody holds it any more."""
        return Visit(self._present, next(self._numbers))

    def __len__(self) -> int:
        return len(self._present)


class Visit:
    """One request's stay. A request that expires between two stages just drops it."""

    __slots__ = ("_number", "_present")

    def __init__(self, present: set[int], number: int) -> None:
        self._present = present
        self._number = number
        present.add(number)

    def leave(self) -> None:
        """The request is done; leaving twice is harmless."""
        self._present.discard(self._number)

    def __del__(self) -> None:
        self._present.discard(self._number)
