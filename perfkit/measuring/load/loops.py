"""How does load arrive: from users who wait for their answers, or by the clock?

The two answer different questions, so every number carries its loop. *Closed*: a fixed number of
users, each with one request in flight. *Open*: requests leave at instants computed beforehand,
however the service fares; their latency counts from those instants.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.fields import Checked, field, named, nested
from perfkit.measuring.load.bursts import Bursts
from perfkit.measuring.load.mixes import PayloadSet, check_mix
from perfkit.measuring.load.replay import Replay
from perfkit.measuring.load.retries import Retries
from perfkit.measuring.load.shape import CHANGING, PROFILES, Shape, Step, check_profile, peak_level, steps_of

THINK_SHAPES = ("constant", "exponential")
ARRIVAL_SHAPES = ("poisson", "constant", "bursty", "replay")
BATCH_WISHES = ("on", "off")
_LANE_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Checked):
    """What both loops share: how requests are exchanged, and which."""

    keep_alive: bool = field(True, "reuse idle connections; off = a new connection for each request")
    connect_timeout_s: float = field(5.0, "give up connecting after this time", low=0.001, high=600.0)
    reply_timeout_s: float = field(30.0, "give up on a reply after this time since sending", low=0.001, high=3600.0)
    payloads: str | None = field(None, "file of request bodies, one JSON document a line; none = the model's own")
    allow_remote: bool = field(False, "also load a service on another host, which then must be yours to load")
    seed: int = field(0, "seed of arrivals, pauses, backoff and the choice of payloads", low=0)
    deadline_s: float | None = field(
        None,
        "age at which a reply is of no use; each attempt says what is left of it (Perfkit-Deadline)",
        low=0.001,
        high=3600.0,
    )
    profile: str = field("steady", "how the level goes over the time; its parameters are in shape", choices=PROFILES)
    shape: Shape = nested(Shape)
    mix: Mapping[str, PayloadSet] = named(PayloadSet)
    """Several payload files by names of the user's own; instead of `payloads`."""
    generators: int = field(1, "processes that share the load and its schedule exactly", low=1, high=64)
    lane: str | None = field(None, "the lane that requests ask for (Perfkit-Lane); none = the service's default")
    batch: str = field("on", "off = asks to be served in no batch with others (Perfkit-Batch)", choices=BATCH_WISHES)
    retries: Retries = nested(Retries)

    def __post_init__(self) -> None:
        # super() needs the class cell, which slots=True replaces; the base is named instead.
        Checked.__post_init__(self)
        check_mix(self.mix)
        if self.mix and self.payloads is not None:
            raise ConfigError("payloads and mix are both given; name one file of payloads, or a mix of several")
        if self.lane is not None and not _LANE_NAME.fullmatch(self.lane):
            raise ConfigError(f"lane is {self.lane!r}; it takes a name of letters, digits, _ and -, at most 64 of them")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop(Exchange):
    """Users who send, wait for the reply, think, and send again."""

    concurrency: int = field(1, "users, each with at most one request in flight", low=1, high=10_000)
    think_time_s: float = field(0.0, "mean pause between a reply and the user's next request", low=0.0, high=3600.0)
    think: str = field("constant", "constant = the same pause every time; exponential = seeded", choices=THINK_SHAPES)

    def __post_init__(self) -> None:
        Exchange.__post_init__(self)
        check_profile(self.profile, self.level, self.shape)
        if self.generators > self.peak_users:
            raise ConfigError(
                f"generators is {self.generators} with {self.peak_users} users; each process takes at least one user"
            )

    @property
    def loop(self) -> str:
        """Which kind of loop this is: `closed`."""
        return "closed"

    @property
    def level(self) -> float:
        """What the profile goes by: users."""
        return float(self.concurrency)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The parts of the load's time, in order."""
        return steps_of(self.profile, self.level, self.shape)

    @property
    def peak_users(self) -> int:
        """The most users at once, over the whole profile."""
        return math.ceil(peak_level(self.steps))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop(Exchange):
    """Requests at a given mean rate, scheduled before the start."""

    rate_rps: float = field(10.0, "mean requests per second", low=0.001, high=1_000_000.0)
    arrivals: str = field(
        "poisson",
        "poisson = seeded exponential gaps; constant = equal gaps; bursty, by bursts; replay, of a file",
        choices=ARRIVAL_SHAPES,
    )
    max_connections: int = field(
        1024, "most connections; a request that finds none free waits, and the wait counts", low=1, high=60_000
    )
    bursts: Bursts = nested(Bursts)
    replay: Replay = nested(Replay)

    def __post_init__(self) -> None:
        Exchange.__post_init__(self)
        if self.profile == "smoke":
            raise ConfigError("a smoke test is one user in a closed loop; leave the rate out, or the profile")
        check_profile(self.profile, self.level, self.shape)
        if self.arrivals == "replay" and self.profile != "steady":
            raise ConfigError(f"profile is {self.profile} with replayed arrivals; the schedule file decides alone")
        if self.generators > self.max_connections:
            raise ConfigError(
                f"generators is {self.generators} with max_connections {self.max_connections}; each takes at least one"
            )

    @property
    def loop(self) -> str:
        """Which kind of loop this is: `open`."""
        return "open"

    @property
    def level(self) -> float:
        """What the profile goes by: requests a second."""
        return self.rate_rps

    @property
    def steps(self) -> tuple[Step, ...]:
        """The parts of the load's time, in order."""
        return steps_of(self.profile, self.level, self.shape)


Load = ClosedLoop | OpenLoop
_RECORDS: dict[str, type[ClosedLoop] | type[OpenLoop]] = {"closed": ClosedLoop, "open": OpenLoop}


def changes_level(load: Load) -> bool:
    """Whether the load goes through several levels, so that it has no steady state as a whole."""
    return load.profile in CHANGING


def load_to_nested(load: Load) -> dict[str, Any]:
    """The load as a plain dict that starts with its loop."""
    return {"loop": load.loop, **fields.to_nested(load)}


def load_from_nested(values: Mapping[str, Any]) -> Load:
    """The load that `load_to_nested` wrote down; raises ConfigError."""
    rest = dict(values)
    loop = rest.pop("loop", None)
    if loop not in _RECORDS:
        raise ConfigError(f"loop is {loop!r}; it takes one of closed, open")
    return fields.from_nested(_RECORDS[loop], rest)
