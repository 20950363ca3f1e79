"""What may be sent, and in which order? One file of request bodies, or several in stated proportions.

Every set is used in whole shuffles of its own, so each of its bodies comes equally often; where there are
several sets, each fills its share of every block of requests, as nearly as whole numbers allow.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field
from perfkit.measuring.load.payloads import find_payload_file, read_payloads

_ORDER_LENGTH = 4096  # few payloads are shuffled anew this many times over before the order repeats
_BLOCK = 128  # requests that are shuffled among each other


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSet(Checked):
    """One of several files of request bodies, how often it is used, and the lane that it asks for."""

    file: str | None = field(None, "request bodies, one JSON document a line")
    weight: float = field(1.0, "how often, relative to the other sets", low=0.001, high=1_000_000.0)
    lane: str | None = field(None, "lane that its requests ask for; none = the load's")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Every body that a load may send; a set is a span of them. `name` is "" where there is but one file."""

    bodies: Sequence[bytes]
    sets: Sequence[PlacedSet]

    def facts(self) -> dict[str, Any]:
        """What the report says of them: how many, how many different, and which set holds which."""
        sets = [dataclasses.asdict(one) for one in self.sets]
        return {
            "payloads": {"count": len(self.bodies), "sets": sets},
            "different_payloads": len(set(self.bodies)),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSet:
    """A set's bodies within the catalogue."""

    name: str
    first: int
    count: int
    weight: float
    lane: str | None


def read_catalogue(mix: Mapping[str, PayloadSet], single: Path) -> Catalogue:
    """The bodies of the mix, else those of the single file; raises ConfigError."""
    wanted = {name: (one, find_payload_file(str(one.file))) for name, one in mix.items()}
    bodies: list[bytes] = []
    sets = []
    for name, (one, path) in (wanted or {"": (PayloadSet(), single)}).items():
        found = read_payloads(path)
        sets.append(PlacedSet(name=name, first=len(bodies), count=len(found), weight=one.weight, lane=one.lane))
        bodies += found
    return Catalogue(bodies=bodies, sets=sets)


def check_mix(mix: Mapping[str, PayloadSet]) -> None:
    """Raise ConfigError for a set without a file."""
    for name, one in mix.items():
        if one.file is None:
            raise ConfigError(f"payload set {name} has no file; --set load.mix.{name}.file=FILE, or leave the set out")


def payload_order(sets: Sequence[PlacedSet], seed: int) -> array[int]:
    """Indices of bodies in the order of use, to be repeated."""
    if len(sets) == 1:
        shuffles = _shuffles(sets[0], random.Random(f"payloads {seed}"))
        whole = -(-_ORDER_LENGTH // sets[0].count) * sets[0].count
        return array("q", itertools.islice(shuffles, whole))
    source = random.Random(f"mix {seed}")
    members = [_shuffles(one, random.Random(f"payloads {seed} {one.name}")) for one in sets]
    longest = max(one.count / one.weight for one in sets) * sum(one.weight for one in sets)
    blocks = -(-max(_ORDER_LENGTH, round(longest)) // _BLOCK)
    order = array("q")
    for turn in _turns([one.weight for one in sets], blocks, source):
        order.append(next(members[turn]))
    return order


def _shuffles(one: PlacedSet, source: random.Random) -> Iterator[int]:
    while True:
        shuffled = list(range(one.first, one.first + one.count))
        source.shuffle(shuffled)
        yield from shuffled


def _turns(weights: Sequence[float], blocks: int, source: random.Random) -> Iterator[int]:
    """Which set is next: whichever lacks most of its share, then shuffled inside each block."""
    total, credit = sum(weights), [0.0] * len(weights)
    for _ in range(blocks):
        block = []
        for _ in range(_BLOCK):
            credit = [left + weight for left, weight in zip(credit, weights, strict=True)]
            turn = max(range(len(weights)), key=credit.__getitem__)
            credit[turn] -= total
            block.append(turn)
        source.shuffle(block)
        yield from block
