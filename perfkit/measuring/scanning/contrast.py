"""How do two or more ways to run one model differ, over the whole range of a setting or a load?

All sides are points of one scan, so that they are measured in the same interleaved rounds: a slow minute
of the machine falls on all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.scaling.knee import find_knee
from perfkit.measuring.load.loops import Load
from perfkit.measuring.scanning.grid import Scan, ScanWatch, new_scan_folder, run_scan
from perfkit.measuring.scanning.host import Launched
from perfkit.measuring.scanning.plan import Axis, Point, ScanPlan, find_field, grid
from perfkit.serving.server.defaults import settings_for

SIDE = "side"
Sides = Mapping[str, Mapping[str, Any]]
"""Label -> what this side changes against the model's defaults (dotted names)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A measured contrast on disk: one curve a side, all over `varied`."""

    scan: Scan
    varied: str

    @property
    def series(self) -> dict[str, list[Mapping[str, Any]]]:
        """Label of a side -> its points, each carrying only the setting that the curve varies."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for point in self.scan.points:
            own = {**point, "varied": {self.varied: point["varied"][self.varied]}}
            found.setdefault(point["varied"][SIDE], []).append(own)
        return found

    @property
    def knees(self) -> dict[str, Mapping[str, Any]]:
        """Label of a side -> its knee, where one can be told."""
        found = {label: find_knee(points) for label, points in self.series.items()}
        return {label: knee for label, knee in found.items() if knee is not None}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a contrast asks: which sides, over which setting or load field, under which load, for how long."""

    model: str
    sides: Sides
    name: str
    values: Sequence[Any]
    load: Load
    seconds: float = 4.0
    rounds: int = 2

    def plan(self) -> ScanPlan:
        """Every side at every value; raises ConfigError for a setting that is unknown or contradicts another."""
        if not self.sides:
            raise ConfigError("a contrast has no side; give at least one label with its settings")
        axes = {self.name: Axis(name=find_field(self.name, self.load), values=tuple(self.values))}
        points = [
            dataclasses.replace(point, varied={SIDE: label, **point.varied})
            for label, changes in self.sides.items()
            for point in self._points(changes, axes)
        ]
        return ScanPlan(points=tuple(points), seconds=self.seconds, rounds=self.rounds, seed=0)

    def _points(self, changes: Mapping[str, Any], axes: Mapping[str, Axis]) -> tuple[Point, ...]:
        return grid(settings_for(self.model, changes), self.load, axes)


def contrast(question: Question, folder: Path | None = None, watch: ScanWatch | None = None) -> Contrast:
    """Measure every side on a server of its own launch; raises what a scan raises."""
    plan = question.plan()
    with Launched() as host:
        scan = run_scan(plan, host, folder or new_scan_folder(), watch)
    return Contrast(scan=scan, varied=question.name)
