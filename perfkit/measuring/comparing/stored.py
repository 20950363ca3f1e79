"""Which runs does a folder hold, and may they stand for one side of a comparison?

Runs of one side must have the same settings and load; seeds may differ. Runs that lie on the disk already
were not interleaved, so whatever changed between the two sides is part of the shift: it is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.analysis.compare.replicate import Replicate, replicate_values
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates
from perfkit.measuring.archive.folder import StoredRun, contents_of, load_run
from perfkit.measuring.archive.format import MANIFEST_NAME
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.archive.scanplan import differences
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.measuring.experiment import run_data

NOT_INTERLEAVED = (
    "these runs were not interleaved: whatever changed on the machine between the two sides is part of the shift; "
    "`perfkit compare` on settings measures in turns"
)
MACHINE = ("machine", "cpu_model", "usable_cores", "quota_cores")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """Runs of one setting under one load, the oldest first."""

    folder: Path
    manifest: Manifest  # of the first run; what it says of settings, load and machine holds for all
    runs: tuple[Replicate, ...]


def run_folders(folder: Path) -> list[Path]:
    """The run folders in a folder, or the one that it is, the oldest first; raises ConfigError when there is none."""
    if (folder / MANIFEST_NAME).is_file():
        return [folder]
    found = [path for path in folder.iterdir() if (path / MANIFEST_NAME).is_file()] if folder.is_dir() else []
    if not found:
        raise ConfigError(f"{folder} holds no runs; give a run's folder, or one with several runs of the same setting")
    return sorted(found, key=lambda path: (load_run(path).manifest.created, path.name))


def read_replicates(folder: Path) -> Replicates:
    """The runs in a folder as one side; raises ConfigError when they are not of one setting, ArchiveError."""
    manifests = {path: load_run(path).manifest for path in run_folders(folder)}
    paths = list(manifests)
    for path in paths[1:]:
        if found := differences(setting_of(manifests[path]), setting_of(manifests[paths[0]])):
            for first in found:
                raise ConfigError(
                    f"{folder} holds runs of several settings: in {path.name} {first} in {paths[0].name}; "
                    "put the runs of each setting into a folder of its own"
                )
    runs = tuple(read_replicate(path) for path in paths)
    return Replicates(folder=folder, manifest=manifests[paths[0]], runs=runs)


def read_replicate(folder: Path) -> Replicate:
    """One archived run as a replicate; raises ArchiveError."""
    run = load_run(folder)
    point = run.manifest.certificate
    if not point:
        raise ArchiveError(f"{folder} holds no certificate, as a round of an unfinished scan; give finished runs")
    return Replicate(
        run_id=run.manifest.id,
        created=run.manifest.created,
        grade=str(point.get("grade")),
        reasons=tuple(map(str, point.get("reasons") or ())),
        requests=int(point.get("requests") or 0),
        values=_values(point, run),
        error_ratio=float(point.get("error_ratio") or 0.0),
        stolen_ratio=_recorded(point, "steal", "stolen_ratio"),
        load_average=run.manifest.environment.get("load_average"),
        pressure_ratio=_recorded(point, "pressure", "cpu_some_ratio"),
        throttled_ratio=_recorded(point, "throttling", "throttled_ratio"),
        neighbour_cores=_recorded(point, "neighbours", "cores"),
    )


def _values(point: Mapping[str, Any], run: StoredRun) -> dict[str, float | None]:
    return replicate_values(point, run_data(contents_of(run)))


def _recorded(point: Mapping[str, Any], entry: str, figure: str) -> float | None:
    """A figure in an entry of the run's certificate; None where it was not recorded."""
    entries = (point.get("certificate") or {}).get("entries") or ()
    found = (one["figures"].get(figure) for one in entries if one.get("name") == entry)
    value = next(found, None)
    return None if value is None else float(value)


def setting_of(manifest: Manifest) -> dict[str, Any]:
    """What makes two runs replicates: settings and load without their seeds."""
    settings = {name: value for name, value in manifest.settings.items() if name != "seed"}
    load = {name: value for name, value in manifest.load.items() if name != "seed"}
    return {"settings": settings, "load": load}


def judge_sides(sides: tuple[Replicates, Replicates], rule: Rule, across_machines: bool = False) -> Comparison:
    """Judge two sides that were not measured in turns; raises ConfigError for runs of different machines."""
    first, second = sides
    apart = machine_differences(first.manifest, second.manifest)
    if apart and not across_machines:
        raise ConfigError(
            f"the runs are from different machines ({'; '.join(apart)}); measure both on one, "
            "or compare all the same with --across-machines"
        )
    return Comparison(
        labels=(str(first.folder), str(second.folder)),
        simulated=first.manifest.simulated or second.manifest.simulated,
        findings=compare_replicates(first.runs, second.runs, False, rule),
        rule=rule,
        runs_a=first.runs,
        runs_b=second.runs,
        notes=(NOT_INTERLEAVED, *(f"different machines: {one}" for one in apart), *_moved(first, second)),
        folders=(first.folder, second.folder),
    )


def machine_differences(a: Manifest, b: Manifest) -> list[str]:
    """How the machines of two runs differ, a line each; nothing when they are the same."""
    return [
        f"{name} {a.environment.get(name)} and {b.environment.get(name)}"
        for name in MACHINE
        if a.environment.get(name) != b.environment.get(name)
    ]


def _moved(a: Replicates, b: Replicates) -> Sequence[str]:
    """What else differs: load, packages, interpreter."""
    pairs = (
        ("load", setting_of(a.manifest)["load"], setting_of(b.manifest)["load"]),
        ("packages", a.manifest.environment.get("packages") or {}, b.manifest.environment.get("packages") or {}),
        ("python", {"python": a.manifest.environment.get("python")}, {"python": b.manifest.environment.get("python")}),
    )
    return [f"{name} differs: {', '.join(differences(theirs, ours))}" for name, ours, theirs in pairs if ours != theirs]
