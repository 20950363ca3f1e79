"""Which lane's turn is it, when several have something that waits?

By strict priority, where aging keeps the low from starving, or by weighted shares. Pure: asked once
for every item that leaves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

# One item in ten goes to the lanes that are passed over for too long: twice the 5 % that a low lane is
# promised, and a tenth of the capacity that the high lanes lose at most.
AGED_EVERY = 10


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """What an order needs to know of one lane, and its own notes on it."""

    priority: int
    share: float
    oldest_ns: int = 0  # when its first waiting item was queued
    start_tag: float = 0.0  # of its next item (shares)
    aged_turn: int = 0  # the number of its last turn by aging (strict)


class Order(Protocol):
    """Picks whose item leaves next."""

    def joined(self, turn: Turn) -> None:
        """A lane in which nothing waited has an item again."""

    def pick(self, turns: Sequence[Turn], now_ns: int) -> Turn:
        """Whose turn it is, of the lanes that have something; that lane's first item leaves now."""


class StrictOrder:
    """The lowest priority number first; equals by age.

    A lane whose first item has waited for `aging_ns` gets one item in `AGED_EVERY`, whatever waits above it; several
    such lanes take turns. So that item leaves after at most `AGED_EVERY` further items for every lane that has aged.
    None = never.
    """

    def __init__(self, aging_ns: int | None) -> None:
        self._aging_ns = aging_ns
        self._since_aged = AGED_EVERY
        self._aged_turns = 0

    def joined(self, turn: Turn) -> None:
        """Nothing to note."""

    def pick(self, turns: Sequence[Turn], now_ns: int) -> Turn:
        """The highest lane, or now and then one that was passed over for too long."""
        best = min(turns, key=lambda turn: (turn.priority, turn.oldest_ns))
        self._since_aged += 1
        if self._aging_ns is None or self._since_aged < AGED_EVERY:
            return best
        aged_ns = now_ns - self._aging_ns
        aged = [turn for turn in turns if turn.priority > best.priority and turn.oldest_ns <= aged_ns]
        if not aged:
            return best
        self._since_aged = 0
        self._aged_turns += 1
        chosen = min(aged, key=lambda turn: (turn.aged_turn, turn.oldest_ns))
        chosen.aged_turn = self._aged_turns
        return chosen


class SharedOrder:
    """In proportion to the shares, item by item: start-time fair queueing (Goyal, Vin and Cheng 1996).

    An item's start tag is the later of virtual time and its lane's last finish tag, its finish tag 1 / share later;
    the smallest start tag leaves, and virtual time is the start tag of what left last. While two lanes both have
    something that waits, their counts n divided by their shares w differ by 1 / w1 + 1 / w2 at most.
    """

    def __init__(self) -> None:
        self._virtual_time = 0.0

    def joined(self, turn: Turn) -> None:
        """What a lane did not use while it was empty is not saved up."""
        turn.start_tag = max(turn.start_tag, self._virtual_time)

    def pick(self, turns: Sequence[Turn], now_ns: int) -> Turn:
        """The lane whose next item starts first in virtual time; equals by age."""
        chosen = min(turns, key=lambda turn: (turn.start_tag, turn.oldest_ns))
        self._virtual_time = chosen.start_tag
        chosen.start_tag += 1 / chosen.share
        return chosen
