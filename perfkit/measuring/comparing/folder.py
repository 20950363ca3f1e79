"""How does a comparison lie on the disk, so that a kill at any instant loses at most the running pair?

    comparison.json      the plan, as it was made at the start
    comparison.lock      held by the process that writes
    a/000 b/000 a/001 …  one run folder a run, saved in pairs: each pair before the next starts

Each side is an ordinary folder of runs, which `perfkit runs` lists and `perfkit compare` takes again.
A pair of which only one half reached the disk was cut short; it is measured again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import documents, durable, scanplan
from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.format import FORMAT_VERSION, MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.lock import Writer, locked
from perfkit.measuring.comparing.plan import ARMS, Arm, ComparisonPlan

COMPARISON_NAME = "comparison.json"
LOCK_NAME = "comparison.lock"
_REMEDY = "restore the file from a copy, or compare again elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredComparison:
    """A comparison on the disk, for reading; takes no lock."""

    path: Path
    simulated: bool
    plan: Mapping[str, Any]

    def run_folder(self, pair: int, arm: Arm) -> Path:
        """Where the run of one side of a pair lies."""
        return self.path / arm / f"{pair:03d}"

    def done_pairs(self) -> tuple[int, ...]:
        """The pairs of which both runs are on the disk."""
        return tuple(pair for pair in range(self.plan["pairs"]) if all(self._is_saved(pair, arm) for arm in ARMS))

    def _is_saved(self, pair: int, arm: Arm) -> bool:
        return (self.run_folder(pair, arm) / MANIFEST_NAME).is_file()


class ComparisonWriter(Writer):
    """A comparison that this process writes, from `open_comparison_folder` until `close`. One thread uses it."""

    def __init__(self, stored: StoredComparison, lock: int) -> None:
        super().__init__(lock)
        self.stored = stored

    def save_pair(self, pair: int, runs: Mapping[Arm, RunContents]) -> None:
        """Save both runs of a pair; on the disk when it returns. Raises ArchiveError."""
        for arm in ARMS:
            durable.remove(self.stored.run_folder(pair, arm))  # half of a pair that was cut short
        for arm in ARMS:
            save_run(self.stored.run_folder(pair, arm), runs[arm])


def open_comparison_folder(folder: Path, plan: ComparisonPlan, resume: bool) -> ComparisonWriter:
    """Start a comparison in a folder of its own, or go on with the one there.

    Raises ConfigError when the folder holds results already, or (to resume) none or those of another plan;
    ArchiveError when another process writes there or the disk refuses.
    """
    where = folder / COMPARISON_NAME
    if resume and not where.exists():
        raise ConfigError(f"{folder} holds no comparison to resume; leave out --resume to start one there")
    with locked(folder, LOCK_NAME, "comparison") as lock:
        if resume:
            stored = load_comparison(folder)
            _require_same(plan, stored)
            for arm in ARMS:
                durable.remove_torn(folder / arm)
            return ComparisonWriter(stored, lock)
        for name in (COMPARISON_NAME, MANIFEST_NAME, SCAN_NAME, *ARMS):
            if os.path.lexists(folder / name):
                raise ConfigError(f"{folder} holds {name} already; go on with it by --resume, or choose another --out")
        document = {"schema": FORMAT_VERSION, "simulated": plan.is_simulated, "plan": plan.to_json()}
        durable.replace_file(where, documents.encode(document, "the comparison"))
        return ComparisonWriter(load_comparison(folder), lock)


def comparison_of(a: Path, b: Path) -> Path | None:
    """The comparison whose two sides these folders are, so that its pairs are not torn apart; None for any others."""
    parent = a.resolve().parent
    is_one = parent == b.resolve().parent and (a.name, b.name) == ARMS and (parent / COMPARISON_NAME).exists()
    return a.parent if is_one else None


def load_comparison(folder: Path) -> StoredComparison:
    """Open a comparison for reading; raises ArchiveError that names file and remedy."""
    where = folder / COMPARISON_NAME
    document = documents.read_document(where)
    plan = document.get("plan")
    if not isinstance(plan, dict) or not _is_count(plan.get("pairs")):
        raise ArchiveError(f"{where}: plan is {plan!r:.80}; an object with a number of pairs is needed: {_REMEDY}")
    if not all(isinstance(plan.get(arm), dict) for arm in ARMS):
        raise ArchiveError(f"{where}: the plan lacks a side; it needs an object a and an object b: {_REMEDY}")
    return StoredComparison(path=folder, simulated=document.get("simulated") is True, plan=plan)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _require_same(plan: ComparisonPlan, stored: StoredComparison) -> None:
    where = stored.path / COMPARISON_NAME
    given = documents.decode(documents.encode(plan.to_json(), "the plan"), where)
    if found := list(scanplan.differences(given, dict(stored.plan))):
        raise ConfigError(
            f"{stored.path} holds a comparison with another plan: {found[0]}. Resume with the arguments it was "
            "started with, or start a new one with another --out"
        )
