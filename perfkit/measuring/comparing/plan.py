"""Which two settings are compared, how often, and in which order?

Runs come in blocks of four, A B B A or B A A B by the toss of a seeded coin, so that whatever drifts in a
straight line falls on both sides alike; two neighbours are a pair.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any, NamedTuple

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.archive.storedcomparison import ARMS, Arm
from perfkit.measuring.load.loops import Load, load_to_nested
from perfkit.measuring.phase import check_seconds
from perfkit.settings.server import ServerSettings

PAIRS = 10
"""MEASUREMENT's comparison rule asks for at least as many."""
SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison: a name for people, the settings, and the load."""

    label: str
    settings: ServerSettings
    load: Load

    def to_json(self) -> dict[str, Any]:
        """As `comparison.json` keeps it."""
        return {
            "label": self.label,
            "settings": fields.to_nested(self.settings),
            "load": load_to_nested(self.load),
        }


class Turn(NamedTuple):
    """One run: of which pair, and of which side."""

    pair: int
    arm: Arm


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """The whole comparison; `seconds` is measured time per run."""

    a: Side
    b: Side
    pairs: int = PAIRS
    seconds: float = SECONDS
    seed: int = 0

    def __post_init__(self) -> None:
        check_seconds(self.seconds)
        if self.pairs < 1:
            raise ConfigError(f"pairs is {self.pairs}; it takes a whole number, 1 or more")

    @property
    def order(self) -> list[Turn]:
        """Every run in order of execution; the same seed gives the same order."""
        coin = random.Random(self.seed)
        turns: list[Turn] = []
        for pair in range(0, self.pairs, 2):
            first, second = ARMS if coin.random() < 0.5 else ARMS[::-1]
            turns += [Turn(pair, first), Turn(pair, second)]
            if pair + 1 < self.pairs:
                turns += [Turn(pair + 1, second), Turn(pair + 1, first)]
        return turns

    def side(self, arm: Arm) -> Side:
        """A or B."""
        return self.a if arm == "a" else self.b

    @property
    def is_simulated(self) -> bool:
        """Whether a side runs on the simulated device."""
        return self.a.settings.is_simulated or self.b.settings.is_simulated

    def to_json(self) -> dict[str, Any]:
        """The plan as `comparison.json` keeps it."""
        return {
            "a": self.a.to_json(),
            "b": self.b.to_json(),
            "pairs": self.pairs,
            "seconds": self.seconds,
            "seed": self.seed,
            "order": [list(turn) for turn in self.order],
        }
