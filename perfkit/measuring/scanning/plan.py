"""Which points does a scan measure, for how long, and in which order?"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from perfkit import fields
from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import Load, load_to_nested
from perfkit.settings import ServerSettings

SERVER, LOAD = "server.", "load."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One varied field: its full name (`server.workers`, `load.concurrency`) and its values, in the order given."""

    name: str
    values: tuple[Any, ...]


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


def find_field(name: str, load: Load) -> str:
    """The full name of what a user's name means; raises ConfigError that lists what it may mean."""
    if name.startswith(SERVER):
        return SERVER + _only(name, fields.matches(name.removeprefix(SERVER), ServerSettings))
    if name.startswith(LOAD):
        return LOAD + _only(name, fields.matches(name.removeprefix(LOAD), type(load)))
    found = [SERVER + match for match in fields.matches(name, ServerSettings)]
    found += [LOAD + match for match in fields.matches(name, type(load))]
    return _only(name, found)


def _only(name: str, found: Sequence[str]) -> str:
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{name} may mean {' or '.join(found)}; write one of them")
    known = [name for name, _, _ in fields.leaves(ServerSettings)]
    raise ConfigError(f"unknown setting {name}; known: {', '.join(known)}, and the load's fields")


def parse_value(full_name: str, text: str, load: Load) -> Any:
    """A value from text by the field's own type; raises ConfigError."""
    if full_name.startswith(SERVER):
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
