"""How is a baseline kept, and a candidate held against it later? Both as folders of runs in fresh processes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from perfkit import fields
from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.archive import documents, durable
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.archive.format import MANIFEST_NAME
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.archive.scanplan import differences
from perfkit.measuring.audience import Step, Tell
from perfkit.measuring.comparing.interleaving import RUN_OVERHEAD_S, measure_replicate
from perfkit.measuring.comparing.plan import Side
from perfkit.measuring.comparing.stored import Replicates, read_replicates, setting_of
from perfkit.measuring.load.loops import load_from_nested
from perfkit.measuring.phase import Progress, seconds_measured
from perfkit.settings.server import ServerSettings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One setting, measured again and again: how often, for how long each, and where the runs lie."""

    side: Side
    runs: int
    seconds: float
    folder: Path

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ConfigError(f"runs is {self.runs}; it takes a whole number, 1 or more")

    def run_folder(self, number: int) -> Path:
        """Where a run lies."""
        return self.folder / f"{number:03d}"


def measure_replicates(plan: Repetition, tell: Tell | None = None, resume: bool = False) -> Replicates:
    """Measure what is pending, each run in a fresh process and on the disk before the next.

    Raises ConfigError when the folder holds something, or (to resume) runs of another setting or nothing;
    TargetFailed, ArchiveError.
    """
    for number in _resumed(plan) if resume else _begun(plan):

        def report(progress: Progress, number: int = number) -> None:
            if tell is not None:
                run_s = plan.seconds + RUN_OVERHEAD_S
                doing = f"run {number + 1} of {plan.runs}: {plan.side.label}"
                done_s = number * run_s + min(progress.elapsed_s, run_s)
                tell(Step(doing=doing, done_s=done_s, total_s=plan.runs * run_s))

        save_run(plan.run_folder(number), measure_replicate(plan.side, number, plan.seconds, report))
    return read_replicates(plan.folder)


def _begun(plan: Repetition) -> Sequence[int]:
    folder = plan.folder
    if folder.exists() and (not folder.is_dir() or os.listdir(folder)):
        raise ConfigError(f"{folder} is there already; go on with it by --resume, name a new folder, or remove it")
    return range(plan.runs)


def _resumed(plan: Repetition) -> Sequence[int]:
    """The runs that are not on the disk yet."""
    durable.remove_torn(plan.folder)
    stored = setting_of(read_replicates(plan.folder).manifest)
    side = plan.side.to_json()
    given = {part: {name: value for name, value in side[part].items() if name != "seed"} for part in stored}
    for first in differences(documents.decode(documents.encode(given, "the setting"), plan.folder), stored):
        raise ConfigError(
            f"{plan.folder} holds runs of another setting: {first}. Resume with the arguments that it was started "
            "with, or name a new folder"
        )
    return [number for number in range(plan.runs) if not (plan.run_folder(number) / MANIFEST_NAME).is_file()]


def side_of(baseline: Replicates) -> Side:
    """The settings and load that the runs of a baseline had; raises ConfigError for a service that was not ours."""
    manifest = baseline.manifest
    if not manifest.settings:
        raise ConfigError(
            f"{baseline.folder} holds runs of a service that perfkit did not launch; measure the candidate the same "
            "way and give both folders (--candidate)"
        )
    settings = fields.from_nested(ServerSettings, dict(manifest.settings))
    return Side(label="candidate", settings=settings, load=load_from_nested(manifest.load))


def seconds_of(manifest: Manifest) -> float:
    """Measured seconds of a run, as its plan had them."""
    phase = manifest.rounds[0]
    return seconds_measured((phase["ended_ns"] - phase["started_ns"]) / NS_PER_S)
