"""What does an archive say about how a service changed over time? Its runs by setting, load and machine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.analysis.compare.change_points import ChangePoint, find_change_points
from perfkit.measuring.analysis.compare.replicate import Metric
from perfkit.measuring.archive.folder import load_run
from perfkit.measuring.archive.format import MANIFEST_NAME
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.comparing.stored import MACHINE, setting_of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedRuns:
    """The certified runs below a folder, the oldest first, and what could not be read, by name."""

    manifests: tuple[Manifest, ...]
    unreadable: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One figure of one setting over time. `left_out` counts void runs and those without the figure."""

    metric: Metric
    manifest: Manifest  # of the newest run; what it says of settings, load and machine holds for all
    run_ids: tuple[str, ...]
    created: tuple[str, ...]
    values: tuple[float, ...]
    left_out: int
    change_points: tuple[ChangePoint, ...]

    @property
    def got_worse(self) -> tuple[ChangePoint, ...]:
        """The changes for the worse."""
        return tuple(
            point for point in self.change_points if (point.shift.value_ratio < 0) == self.metric.is_more_better
        )

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "model": self.manifest.settings.get("model"),
            "settings": dict(self.manifest.settings),
            "load": dict(self.manifest.load),
            "simulated": self.manifest.simulated,
            "metric": self.metric.name,
            "runs": list(self.run_ids),
            "created": list(self.created),
            "values": list(self.values),
            "left_out": self.left_out,
            "change_points": [
                {"run": self.run_ids[point.index], "created": self.created[point.index], **point.to_json()}
                for point in self.change_points
            ],
        }


def read_archive(folder: Path) -> ArchivedRuns:
    """Every certified run below a folder, those of comparisons and scans too; raises ConfigError without a folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give the one that runs were saved to (--out)")
    found, unreadable = [], []
    for where in sorted(folder.rglob(MANIFEST_NAME)):
        if any(part.startswith(".") for part in where.relative_to(folder).parts):
            continue
        try:
            manifest = load_run(where.parent).manifest
        except ArchiveError as error:
            unreadable.append(str(error))
            continue
        if manifest.certificate:
            found.append(manifest)
    return ArchivedRuns(
        manifests=tuple(sorted(found, key=lambda one: (one.created, one.id))), unreadable=tuple(unreadable)
    )


def grouped(manifests: Iterable[Manifest], *more: str) -> dict[str, list[Manifest]]:
    """Runs with the same settings, load and machine together; `more` are further keys of their `source` to part by."""
    groups: dict[str, list[Manifest]] = {}
    for one in manifests:
        machine = {name: one.environment.get(name) for name in MACHINE}
        parts = {name: one.source.get(name) for name in more}
        key = json.dumps([setting_of(one), machine, parts], sort_keys=True, default=str)
        groups.setdefault(key, []).append(one)
    return groups


def histories(manifests: Sequence[Manifest], metric: Metric) -> Iterator[History]:
    """The history of a figure for each setting, the longest first."""
    for runs in sorted(grouped(manifests).values(), key=len, reverse=True):
        known = [(one, value) for one in runs if (value := figure_of(one.certificate or {}, metric))]
        values = tuple(value for _, value in known)
        yield History(
            metric=metric,
            manifest=runs[-1],
            run_ids=tuple(one.id for one, _ in known),
            created=tuple(one.created for one, _ in known),
            values=values,
            left_out=len(runs) - len(known),
            change_points=find_change_points(values),
        )


def figure_of(certificate: Mapping[str, Any], metric: Metric) -> float | None:
    """A metric's value in a run's certificate; None for a void run or a figure without a value."""
    if certificate.get("grade") == "void":
        return None
    name = metric.name.removesuffix("_s")
    figure = certificate.get(metric.name) if metric.name.endswith("_rps") else certificate["latency_s"].get(name)
    return None if figure is None else figure["value"]
