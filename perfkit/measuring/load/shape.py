"""How does the level of a load go over its time: one level, a staircase, a ramp, or a spike?

The *level* is what a loop is given: users of a closed loop, requests a second of an open one. A
profile turns it into steps, each at one level or on the way from one to another, decided before the
start. Only a step at one level can have a steady state; the analysis judges each by itself.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

PROFILES = ("steady", "smoke", "staircase", "ramp", "soak", "spike")
CHANGING = ("staircase", "ramp", "spike")
"""Profiles whose level changes; the others stay at the load's own."""
STAIRS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seed 001, section 2.3: 5, 10, 20, 50, 100 threads, as shares of the highest."""
SOAK_RATIOS = (0.7, 0.8)
"""Seed 001, section 2.3: a soak runs at 0.7 to 0.8 of the load that was stable in the staircase."""
MOST_STEPS = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Checked):
    """What the profiles need beside the load's level. Levels are users or requests a second, as the loop has them."""

    levels: str | None = field(
        None, "staircase: its levels in order, as 5/10/20/50/100; none = 0.05/0.1/0.2/0.5/1 of the load's level"
    )
    start_level: float = field(0.0, "ramp: the level that it starts from", low=0.0, high=1_000_000.0)
    rise_ratio: float = field(0.5, "ramp: share of the time that it takes; the level then holds", low=0.01, high=1.0)
    spike_factor: float = field(5.0, "spike: its height as a multiple of the load's level", low=1.01, high=1000.0)
    spike_ratio: float = field(0.2, "spike: its share of the time, in the middle", low=0.01, high=0.9)
    stable: float | None = field(
        None, "soak: the load that was stable before; the level takes 0.7 to 0.8 of it", low=0.001, high=1_000_000.0
    )

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.levels is not None:
            read_levels(self.levels)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One part of a profile: from when to when (shares of its time), from which level to which."""

    name: str
    start_ratio: float
    end_ratio: float
    from_level: float
    to_level: float

    @property
    def is_level(self) -> bool:
        """Whether the level stays the same, so that there can be a steady state."""
        return self.from_level == self.to_level


def read_levels(text: str) -> tuple[float, ...]:
    """The levels of a staircase from its text; raises ConfigError."""
    wanted = "it takes two or more numbers above 0 with / between them, such as 5/10/20"
    try:
        levels = tuple(float(part) for part in text.split("/"))
    except ValueError:
        raise ConfigError(f"shape.levels is {text!r}; {wanted}") from None
    if not 2 <= len(levels) <= MOST_STEPS or not all(0 < level < math.inf for level in levels):
        raise ConfigError(f"shape.levels is {text!r}; {wanted}, at most {MOST_STEPS}")
    return levels


def steps_of(profile: str, level: float, shape: Shape) -> tuple[Step, ...]:
    """The steps of a profile around a level, in order and without a gap."""
    if profile == "staircase":
        return _stairs(stair_levels(level, shape))
    if profile == "ramp":
        rise = shape.rise_ratio
        up, hold = ("ramp", shape.start_level, level), ("hold", level, level)
        return _chain([(0.0, rise), (rise, 1.0)], [up, hold]) if rise < 1 else _chain([(0.0, 1.0)], [up])
    if profile == "spike":
        start, end = (1 - shape.spike_ratio) / 2, (1 + shape.spike_ratio) / 2
        high = round(level * shape.spike_factor, 9)
        named = [("before", level, level), ("spike", high, high), ("after", level, level)]
        return _chain([(0.0, start), (start, end), (end, 1.0)], named)
    return _chain([(0.0, 1.0)], [(profile, level, level)])


def stair_levels(level: float, shape: Shape) -> tuple[float, ...]:
    """The levels that a staircase goes through: those given, else shares of the load's level."""
    if shape.levels is not None:
        return read_levels(shape.levels)
    return tuple(round(level * share, 9) for share in STAIRS)  # 60 users times .05 are 3, not a trifle more


def _stairs(levels: Sequence[float]) -> tuple[Step, ...]:
    edges = [place / len(levels) for place in range(len(levels) + 1)]
    named = [(f"step {number}", level, level) for number, level in enumerate(levels, 1)]
    return _chain(list(itertools.pairwise(edges)), named)


def _chain(spans: Sequence[tuple[float, float]], levels: Sequence[tuple[str, float, float]]) -> tuple[Step, ...]:
    return tuple(
        Step(name=name, start_ratio=start, end_ratio=end, from_level=low, to_level=high)
        for (start, end), (name, low, high) in zip(spans, levels, strict=True)
    )


def peak_level(steps: Sequence[Step]) -> float:
    """The highest level that a profile reaches."""
    return max(max(step.from_level, step.to_level) for step in steps)


def mean_level(steps: Sequence[Step]) -> float:
    """The level averaged over the profile's time."""
    return sum((step.end_ratio - step.start_ratio) * (step.from_level + step.to_level) / 2 for step in steps)


def check_profile(profile: str, level: float, shape: Shape) -> None:
    """Raise ConfigError when a smoke test has more than a user, or a soak no stable load that it may be a share of."""
    if profile == "smoke" and level != 1:
        raise ConfigError(f"a smoke test has one user; the load's level is {level:g}: use concurrency 1, or no profile")
    if profile != "soak":
        return
    low, high = SOAK_RATIOS
    if shape.stable is None:
        raise ConfigError(
            "a soak needs the load that was stable before: --stable 20, --stable 400rps, or the folder of a scan or run"
        )
    # A share of few users is no whole number; the next one on either side will do.
    least, most = max(1.0, math.floor(low * shape.stable)), math.ceil(high * shape.stable)
    if not min(least, low * shape.stable) <= level <= max(most, high * shape.stable):
        raise ConfigError(
            f"the level of the soak is {level:g}; it takes {low:g} to {high:g} of the stable load, "
            f"{low * shape.stable:g} to {high * shape.stable:g}"
        )
