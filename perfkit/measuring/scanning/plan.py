"""Which points does a scan measure, for how long, and in which order?"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Mapping
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import Load, load_to_nested
from perfkit.measuring.phase import check_seconds
from perfkit.settings.server import ServerSettings

SERVER, LOAD = "server.", "load."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One varied field: its full name (`server.workers`, `load.concurrency`) and its values, in the order given."""

    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        twice = next((value for place, value in enumerate(self.values) if value in self.values[:place]), None)
        if not self.values or twice is not None:
            problem = f"{twice} twice" if self.values else "no value"
            raise ConfigError(f"the values to vary {self.name} over name {problem}; give each once, and at least one")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of the grid. `varied` holds the names as the user wrote them."""

    settings: ServerSettings | None
    load: Load
    varied: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The whole scan. `seconds` is measured time per point, spread over the rounds."""

    points: tuple[Point, ...]
    seconds: float
    rounds: int
    seed: int

    def __post_init__(self) -> None:
        check_seconds(self.seconds)
        if self.rounds < 1:
            raise ConfigError(f"rounds is {self.rounds}; it takes a whole number, 1 or more")

    @property
    def order(self) -> list[list[int]]:
        """For each round, the points in their random order; the same seed gives the same order."""
        source = random.Random(self.seed)
        return [source.sample(range(len(self.points)), len(self.points)) for _ in range(self.rounds)]

    def to_json(self) -> dict[str, Any]:
        """The plan as `scan.json` keeps it."""
        return {
            "points": [_point_json(point) for point in self.points],
            "seconds": self.seconds,
            "rounds": self.rounds,
            "seed": self.seed,
            "order": self.order,
        }


def _point_json(point: Point) -> dict[str, Any]:
    settings = None if point.settings is None else fields.to_nested(point.settings)
    return {"settings": settings, "load": load_to_nested(point.load), "varied": dict(point.varied)}


def find_field(name: str, load: Load | None) -> str:
    """The full name of what a user's name means: a whole name, else the one that ends in it. None = no load.

    Raises ConfigError that lists what it may mean.
    """
    if name.startswith(SERVER):
        found = [SERVER + match for match in fields.matches(name.removeprefix(SERVER), ServerSettings)]
    elif load is not None and name.startswith(LOAD):
        found = [LOAD + match for match in fields.matches(name.removeprefix(LOAD), type(load))]
    else:
        found = [SERVER + match for match in fields.matches(name, ServerSettings)]
        found += [LOAD + match for match in fields.matches(name, type(load))] if load is not None else []
    # A whole name wins over the end of a longer one: `deadline_s` is the load's, not `queue.deadline_s`.
    found = [full for full in found if full in (SERVER + name, LOAD + name)] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{name} may mean {' or '.join(found)}; write one of them")
    known = fields.known_names(ServerSettings)
    if load is None:
        raise ConfigError(f"unknown setting {name}; known: {', '.join(known)}")
    known += [f"{LOAD}{known}" for known in fields.known_names(type(load))]
    raise ConfigError(f"unknown setting {name}; known with a load in {load.loop} loop: {', '.join(known)}")


def parse_value(full_name: str, text: str, load: Load | None) -> Any:
    """A value from text by the field's own type; raises ConfigError."""
    if load is None or full_name.startswith(SERVER):
        return fields.parse(full_name.removeprefix(SERVER), text, ServerSettings)
    return fields.parse(full_name.removeprefix(LOAD), text, type(load))


def grid(settings: ServerSettings | None, load: Load, axes: Mapping[str, Axis]) -> tuple[Point, ...]:
    """Every combination of the axes' values; `axes` is keyed by the names as the user wrote them."""
    names = list(axes)
    cells = itertools.product(*(axes[name].values for name in names))
    return tuple(_point(settings, load, axes, dict(zip(names, cell, strict=True))) for cell in cells)


def _point(settings: ServerSettings | None, load: Load, axes: Mapping[str, Axis], varied: Mapping[str, Any]) -> Point:
    server: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in varied.items():
        full = axes[name].name
        target, prefix = (server, SERVER) if full.startswith(SERVER) else (client, LOAD)
        target[full.removeprefix(prefix)] = value
    if server and settings is None:
        raise ConfigError(
            f"{next(iter(server))} cannot be varied: the service was not launched by perfkit; vary the load"
        )
    changed = settings if settings is None else fields.replace(settings, server)
    return Point(settings=changed, load=fields.replace(load, client), varied=varied)
