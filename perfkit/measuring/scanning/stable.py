"""Which load was stable in an earlier measurement? The level that a soak takes its share of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.usable import is_usable
from perfkit.measuring.archive.format import SCAN_NAME
from perfkit.measuring.experiment import open_run
from perfkit.measuring.load.profiles import Level, read_stable
from perfkit.measuring.scanning.grid import open_scan_results

Points = Sequence[Mapping[str, Any]]


def find_stable(text: str) -> Level:
    """From `20`, `400rps`, or the folder of a scan or run; raises ConfigError or ArchiveError."""
    folder = Path(text)
    return stable_level(folder) if folder.is_dir() else read_stable(text)


def stable_level(folder: Path) -> Level:
    """The highest level with a steady state and few errors that lies no higher than where the knee begins.

    Of a scan its points, of a run its steps, of a run at one level that level. Raises ConfigError where
    nothing was stable, ArchiveError where there is no such folder.
    """
    points, knee = _points_of(folder)
    stable = [point for point in points if "load" in point and is_usable(point)]
    if not stable:
        grades = ", ".join(sorted({str(point["grade"]) for point in points}))
        raise ConfigError(f"nothing in {folder} was stable ({grades}); measure a staircase first, or say --stable 20")
    levels = sorted(_level(point) for point in stable)
    below = [level for level in levels if knee is None or level <= knee["low"]]
    highest = below[-1] if below else levels[0]
    return Level(rate_rps=highest) if stable[0]["load"]["loop"] == "open" else Level(users=round(highest))


def _points_of(folder: Path) -> tuple[Points, Mapping[str, Any] | None]:
    """The points, and the knee where it is one of the load's level."""
    if (folder / SCAN_NAME).exists():
        scan = open_scan_results(folder)
        points, knee = scan.points, scan.knee
    else:
        whole = open_run(folder).point
        points, knee = whole.get("steps") or [whole], whole.get("knee")
    is_of_load = knee is not None and str(knee["setting"]).removeprefix("load.") in ("concurrency", "rate_rps")
    return points, knee if is_of_load else None


def _level(point: Mapping[str, Any]) -> float:
    load = point["load"]
    return float(load["rate_rps"] if load["loop"] == "open" else load["concurrency"])
