"""How is a comparison written, so that a kill at any instant loses at most the running pair?

Each side is an ordinary folder of runs, which `perfkit runs` lists and `perfkit compare` takes again.
A pair of which only one half reached the disk was cut short; it is measured again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from perfkit.clock import calendar_now
from perfkit.errors import ConfigError
from perfkit.measuring.archive import documents, durable, scanplan
from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.format import COMPARISON_NAME, FORMAT_VERSION, MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.lock import COMPARISON_LOCK, Writer, locked
from perfkit.measuring.archive.manifest import new_id
from perfkit.measuring.archive.storedcomparison import ARMS, Arm, StoredComparison, load_comparison
from perfkit.measuring.comparing.plan import ComparisonPlan


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
    with locked(folder, COMPARISON_LOCK, "comparison") as lock:
        if resume:
            stored = load_comparison(folder)
            _require_same(plan, stored)
            for arm in ARMS:
                durable.remove_torn(folder / arm)
            return ComparisonWriter(stored, lock)
        for name in (COMPARISON_NAME, MANIFEST_NAME, SCAN_NAME, *ARMS):
            if os.path.lexists(folder / name):
                raise ConfigError(f"{folder} holds {name} already; go on with it by --resume, or choose another --out")
        durable.replace_file(where, documents.encode(_document(plan), "the comparison"))
        return ComparisonWriter(load_comparison(folder), lock)


def comparison_of(a: Path, b: Path) -> Path | None:
    """The comparison whose two sides these folders are, so that its pairs are not torn apart; None for any others."""
    parent = a.resolve().parent
    is_one = parent == b.resolve().parent and (a.name, b.name) == ARMS and (parent / COMPARISON_NAME).exists()
    return a.parent if is_one else None


def _document(plan: ComparisonPlan) -> dict[str, object]:
    created = calendar_now()
    head = {"schema": FORMAT_VERSION, "id": new_id(created), "created": created, "simulated": plan.is_simulated}
    return head | {"plan": plan.to_json()}


def _require_same(plan: ComparisonPlan, stored: StoredComparison) -> None:
    where = stored.path / COMPARISON_NAME
    given = documents.decode(documents.encode(plan.to_json(), "the plan"), where)
    if found := list(scanplan.differences(given, dict(stored.plan))):
        raise ConfigError(
            f"{stored.path} holds a comparison with another plan: {found[0]}. Resume with the arguments it was "
            "started with, or start a new one with another --out"
        )
