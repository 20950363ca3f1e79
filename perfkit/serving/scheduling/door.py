"""Who waits outside a full queue, in which order do they come in, and who has waited long enough?

The part of the policy `block`. What waits here is bounded by whoever brings it: a connection brings
one request at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, NamedTuple

from perfkit.serving.scheduling.decisions import Item


class Party(NamedTuple, Generic[Item]):
    """Items that come in together or not at all, and until when they wait for that."""

    items: list[Item]
    until_ns: int


class Door(Generic[Item]):
    """First come, first in. Pure."""

    __slots__ = ("_parties",)

    def __init__(self) -> None:
        self._parties: deque[Party[Item]] = deque()

    def __bool__(self) -> bool:
        return bool(self._parties)

    def __len__(self) -> int:
        return sum(len(party.items) for party in self._parties)

    def wait(self, items: Sequence[Item], until_ns: int) -> int:
        """The items queue up outside; returns until when, which is no later than their first deadline."""
        deadlines = [item.deadline_ns for item in items if item.deadline_ns]
        party = Party(list(items), min(until_ns, *deadlines) if deadlines else until_ns)
        self._parties.append(party)
        return party.until_ns

    def next_fitting(self, room: int) -> list[Item]:
        """The first party, when that many items fit; else nothing, for nobody overtakes it."""
        if self._parties and len(self._parties[0].items) <= room:
            return self._parties.popleft().items
        return []

    def turn_away(self, now_ns: int) -> list[Item]:
        """Items whose time outside is over; they are forgotten."""
        late = [item for party in self._parties if party.until_ns <= now_ns for item in party.items]
        if late:
            self._parties = deque(party for party in self._parties if party.until_ns > now_ns)
        return late

    def next_until_ns(self) -> int | None:
        """When the next party has waited long enough; None when nobody waits."""
        return min((party.until_ns for party in self._parties), default=None)

    def forget(self, item: Item) -> bool:
        """An item leaves; False when it does not wait here."""
        for party in self._parties:
            if item in party.items:
                party.items.remove(item)
                if not party.items:
                    self._parties.remove(party)
                return True
        return False
