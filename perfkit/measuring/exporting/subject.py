"""What is exported? One run, or the points of a scan, each with its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.entries import RunEntry
from perfkit.measuring.archive.folder import StoredRun, load_run
from perfkit.measuring.archive.storedscan import load_scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run (one member), or a scan's points in order. `points` are their figures, as `scan --json` prints them."""

    entry: RunEntry
    runs: Sequence[StoredRun]
    points: Sequence[Mapping[str, Any]]
    numbers: Sequence[int]  # which point of the scan each run is
    is_scan: bool

    @property
    def one(self) -> StoredRun:
        """The only run; raises ConfigError for a scan of several points."""
        if len(self.runs) > 1:
            raise ConfigError(f"scan {self.entry.id} has {len(self.runs)} points; name one with --point, from 0 on")
        return self.runs[0]


def subject_of(entry: RunEntry, point: int | None = None) -> Subject:
    """All that a line of the list stands for, or one point of a scan; raises ConfigError, ArchiveError."""
    if entry.state != "complete":
        raise ArchiveError(f"{entry.path} is {entry.state}: {entry.reason}")
    if entry.kind == "run":
        if point is not None:
            raise ConfigError(f"{entry.id} is a run and has no points; leave out --point")
        run = load_run(entry.path)
        return Subject(entry=entry, runs=[run], points=[run.manifest.certificate or {}], numbers=[0], is_scan=False)
    scan = load_scan(entry.path)
    if point is not None and not 0 <= point < entry.points:
        raise ConfigError(f"--point is {point}; scan {entry.id} has points 0 to {entry.points - 1}")
    numbers = list(range(entry.points)) if point is None else [point]
    return Subject(
        entry=entry,
        runs=[scan.run(number) for number in numbers],
        points=[scan.header.points[number] for number in numbers],
        numbers=numbers,
        is_scan=True,
    )
