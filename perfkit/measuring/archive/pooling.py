"""How do the rounds of one scan point become one run?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfkit.measuring.archive.folder import RunContents, StoredRun
from perfkit.measuring.archive.format import TABLES
from perfkit.measuring.archive.manifest import Manifest

if TYPE_CHECKING:
    from pandas import DataFrame


def pool(parts: Sequence[tuple[int, StoredRun]]) -> RunContents:
    """One run out of (round, run) pairs of the same point, in order of the rounds; raises ArchiveError.

    Rows are appended, never renumbered; settings, load and environment are the first round's. The
    certificate is left open, because the rounds' own certificates say nothing about the pool.
    """
    runs = [run for _, run in parts]
    return RunContents(
        manifest=_pool_manifests([run.manifest for run in runs]),
        tables={name: _append(run.table(name) for run in runs if name in run.tables) for name in _held(runs)},
        stacks={name: run.stack(mode) for name, run, mode in _named((index, run, run.stacks) for index, run in parts)},
        logs={
            name: run.read(f"logs/{log}") for name, run, log in _named((index, run, run.logs) for index, run in parts)
        },
    )


def _pool_manifests(manifests: Sequence[Manifest]) -> Manifest:
    def joined(name: str) -> list[Any]:
        return [item for manifest in manifests for item in getattr(manifest, name)]

    return dataclasses.replace(
        manifests[0],
        certificate=None,
        simulated=any(manifest.simulated for manifest in manifests),
        rounds=joined("rounds"),
        gauges=joined("gauges"),
        counters=joined("counters"),
        generator_reports=joined("generator_reports"),
        notes=list(dict.fromkeys(joined("notes"))),
    )


def _held(runs: Sequence[StoredRun]) -> list[str]:
    return [name for name in TABLES if any(name in run.tables for run in runs)]


def _append(frames: Iterable[DataFrame]) -> DataFrame:
    import pandas

    return pandas.concat(list(frames), ignore_index=True)


def _named(held: Iterable[tuple[int, StoredRun, Sequence[str]]]) -> list[tuple[str, StoredRun, str]]:
    """Each file's name in the pool: its own when no other round has it, else with its round before it."""
    files = [(index, run, name) for index, run, names in held for name in names]
    times: Mapping[str, int] = Counter(name for _, _, name in files)
    return [(name if times[name] == 1 else f"r{index:03d}-{name}", run, name) for index, run, name in files]
