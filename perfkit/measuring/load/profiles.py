"""Which load does a name stand for? The profiles of seed 001 and the arrival processes, with their usual values.

A name only fills in a load; everything in it can be changed afterwards, as any setting of a load.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, Load, OpenLoop
from perfkit.measuring.load.replay import length_s, read_schedule
from perfkit.measuring.load.shape import SOAK_RATIOS, Shape

SOAK_RATIO = sum(SOAK_RATIOS) / 2
USUAL_USERS = 8
USUAL_SECONDS = 10.0
USUAL_STAIRS_TOP = 100  # users: seed 001, section 2.3
_WITH_WARMUP = 1.1  # load is applied for a tenth longer than is measured


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NamedProfile:
    """A profile that can be asked for by name: what it is for, and for how long it usually runs."""

    name: str
    text: str
    seconds: float
    is_open: bool
    """Whether it needs a rate; the others take either users or a rate."""


PROFILES_BY_NAME: Mapping[str, NamedProfile] = {
    one.name: one
    for one in (
        NamedProfile(name="smoke", text="one user: does every request succeed?", seconds=3.0, is_open=False),
        NamedProfile(name="staircase", text="up to the level in 5 steps, judged apart", seconds=150.0, is_open=False),
        NamedProfile(name="ramp", text="rises from start_level to the level, then holds", seconds=60.0, is_open=False),
        NamedProfile(name="soak", text="0.75 of the stable load, for long", seconds=600.0, is_open=False),
        NamedProfile(name="spike", text="five times the level for the middle fifth", seconds=60.0, is_open=False),
        NamedProfile(name="constant", text="open loop, equal gaps", seconds=USUAL_SECONDS, is_open=True),
        NamedProfile(name="poisson", text="open loop, exponential gaps", seconds=USUAL_SECONDS, is_open=True),
        NamedProfile(name="bursty", text="open loop, two-state Markov-modulated Poisson", seconds=60.0, is_open=True),
        NamedProfile(name="replay", text="open loop, as a schedule file says", seconds=USUAL_SECONDS, is_open=True),
    )
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How much load: users of a closed loop, or requests a second of an open one."""

    users: int | None = None
    rate_rps: float | None = None


def profile_load(name: str, level: Level, stable: Level | None = None) -> Load:
    """The load of a named profile at a level; `stable` is for a soak, which otherwise gets 0.75 of it as its level.

    Raises ConfigError for an unknown name, or one that the level does not suit.
    """
    if name not in PROFILES_BY_NAME:
        raise ConfigError(f"profile is {name!r}; it takes one of {', '.join(PROFILES_BY_NAME)}")
    if PROFILES_BY_NAME[name].is_open:
        return _open_load(name, level)
    if name == "soak":
        return _soak(level, stable)
    if level.rate_rps is not None:
        return OpenLoop(rate_rps=level.rate_rps, profile=name)
    usual = {"smoke": 1, "staircase": USUAL_STAIRS_TOP}.get(name, USUAL_USERS)
    return ClosedLoop(concurrency=usual if level.users is None else level.users, profile=name)


def _open_load(name: str, level: Level) -> OpenLoop:
    if level.users is not None:
        raise ConfigError(f"{name} is an open loop, which has no users; give --rate instead of --concurrency")
    if name == "replay":
        return OpenLoop(arrivals=name)
    if level.rate_rps is None:
        raise ConfigError(f"{name} is an open loop and needs its rate; give --rate RPS")
    return OpenLoop(rate_rps=level.rate_rps, arrivals=name)


def _soak(level: Level, stable: Level | None) -> Load:
    if stable is None:
        raise ConfigError(
            "a soak needs the load that was stable before: --stable 20 (users), --stable 400rps, or a folder"
        )
    if stable.rate_rps is not None:
        rate_rps = SOAK_RATIO * stable.rate_rps if level.rate_rps is None else level.rate_rps
        return OpenLoop(rate_rps=rate_rps, profile="soak", shape=Shape(stable=stable.rate_rps))
    users = stable.users or 1
    wanted = max(1, math.floor(SOAK_RATIO * users)) if level.users is None else level.users
    return ClosedLoop(concurrency=wanted, profile="soak", shape=Shape(stable=float(users)))


def read_stable(text: str) -> Level:
    """A stable load from text: 20 (users) or 400rps; raises ConfigError."""
    number = text.removesuffix("rps").strip()
    try:
        if number != text.strip():
            return Level(rate_rps=float(number))
        return Level(users=int(number))
    except ValueError:
        raise ConfigError(
            f"stable is {text!r}; it takes users (20), requests a second (400rps), or the folder of a scan or run"
        ) from None


def usual_seconds(name: str | None, load: Load) -> float:
    """For how long a load measures where nobody says: as its profile does, a replay as long as its file."""
    if isinstance(load, OpenLoop) and load.arrivals == "replay":
        return length_s(read_schedule(load.replay)) / _WITH_WARMUP
    return USUAL_SECONDS if name is None else PROFILES_BY_NAME[name].seconds
