"""How is a baseline kept, and a candidate held against it later? Both as folders of runs in fresh processes."""

from __future__ import annotations

import os
from pathlib import Path

from perfkit import fields
from perfkit.clock import NS_PER_S
from perfkit.errors import ConfigError
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.audience import Step, Tell
from perfkit.measuring.comparing.interleaving import RUN_OVERHEAD_S, measure_replicate
from perfkit.measuring.comparing.plan import Side
from perfkit.measuring.comparing.stored import Replicates, read_replicates
from perfkit.measuring.load.loops import load_from_nested
from perfkit.measuring.phase import Progress, seconds_measured
from perfkit.settings.server import ServerSettings


def measure_replicates(side: Side, runs: int, seconds: float, folder: Path, tell: Tell | None = None) -> Replicates:
    """Measure one setting again and again, each run in a fresh process and on the disk before the next.

    Raises ConfigError when the folder holds something, or for a number of runs below 1; TargetFailed, ArchiveError.
    """
    if runs < 1:
        raise ConfigError(f"runs is {runs}; it takes a whole number, 1 or more")
    if folder.exists() and (not folder.is_dir() or os.listdir(folder)):
        raise ConfigError(f"{folder} is there already; name a new folder, or remove it")
    for number in range(runs):

        def report(progress: Progress, number: int = number) -> None:
            if tell is not None:
                run_s = seconds + RUN_OVERHEAD_S
                doing = f"run {number + 1} of {runs}: {side.label}"
                done_s = number * run_s + min(progress.elapsed_s, run_s)
                tell(Step(doing=doing, done_s=done_s, total_s=runs * run_s))

        save_run(folder / f"{number:03d}", measure_replicate(side, number, seconds, report))
    return read_replicates(folder)


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
