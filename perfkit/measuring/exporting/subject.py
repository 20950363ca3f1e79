"""What is exported? One run, the points of a scan or the runs of a comparison, each with its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.entries import RunEntry
from perfkit.measuring.archive.folder import StoredRun, load_run
from perfkit.measuring.archive.storedcomparison import load_comparison
from perfkit.measuring.archive.storedscan import load_scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run (one member), a scan's points or a comparison's runs, with their figures as `--json` prints them."""

    entry: RunEntry
    runs: Sequence[StoredRun]
    points: Sequence[Mapping[str, Any]]
    numbers: Sequence[int]  # which point each run is
    has_points: bool

    @property
    def one(self) -> StoredRun:
        """The only run; raises ConfigError where there are several."""
        if len(self.runs) > 1:
            raise ConfigError(
                f"{self.entry.kind} {self.entry.id} has {len(self.runs)} points; name one with --point, from 0 on"
            )
        return self.runs[0]


def subject_of(entry: RunEntry, point: int | None = None) -> Subject:
    """All that a line of the list stands for, or one point of it; raises ConfigError, ArchiveError."""
    if entry.state != "complete":
        raise ArchiveError(f"{entry.path} is {entry.state}: {entry.reason}")
    if entry.kind == "run":
        if point is not None:
            raise ConfigError(f"{entry.id} is a run and has no points; leave out --point")
        run = load_run(entry.path)
        return Subject(entry=entry, runs=[run], points=[run.manifest.certificate or {}], numbers=[0], has_points=False)
    if point is not None and not 0 <= point < entry.points:
        raise ConfigError(f"--point is {point}; {entry.kind} {entry.id} has points 0 to {entry.points - 1}")
    runs, points = _members(entry)
    numbers = list(range(entry.points)) if point is None else [point]
    return Subject(
        entry=entry,
        runs=[runs[number] for number in numbers],
        points=[points[number] for number in numbers],
        numbers=numbers,
        has_points=True,
    )


def _members(entry: RunEntry) -> tuple[Sequence[StoredRun], Sequence[Mapping[str, Any]]]:
    if entry.kind == "comparison":
        comparison = load_comparison(entry.path)
        return comparison.runs(), comparison.points()
    scan = load_scan(entry.path)
    return [scan.run(number) for number in range(entry.points)], scan.header.points
