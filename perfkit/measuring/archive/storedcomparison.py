"""What does a comparison hold so far? Reading it, finished or not, without getting in its writer's way.

comparison.json      the plan, as it was made at the start
comparison.lock      held by the process that writes
a/000 b/000 a/001 …  one run folder a run, saved in pairs: each pair before the next starts
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import documents
from perfkit.measuring.archive.folder import StoredRun, load_run
from perfkit.measuring.archive.format import COMPARISON_NAME, MANIFEST_NAME
from perfkit.measuring.archive.manifest import check_created

Arm = Literal["a", "b"]
ARMS: tuple[Arm, Arm] = ("a", "b")
_REMEDY = "restore the file from a copy, or compare again elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredComparison:
    """A comparison on the disk, for reading; takes no lock."""

    path: Path
    id: str
    created: str  # ISO 8601 with its zone; empty where the comparison does not tell
    simulated: bool
    plan: Mapping[str, Any]

    @property
    def labels(self) -> tuple[str, str]:
        """What A and B are called."""
        a, b = (str(self.plan[arm].get("label") or arm.upper()) for arm in ARMS)
        return a, b

    @property
    def pairs(self) -> int:
        """How many pairs are planned."""
        return int(self.plan["pairs"])

    def run_folder(self, pair: int, arm: Arm) -> Path:
        """Where the run of one side of a pair lies."""
        return self.path / arm / f"{pair:03d}"

    def done_pairs(self) -> tuple[int, ...]:
        """The pairs of which both runs are on the disk."""
        return tuple(pair for pair in range(self.pairs) if all(self._is_saved(pair, arm) for arm in ARMS))

    def runs(self) -> list[StoredRun]:
        """The runs of the whole pairs, A before B; raises ArchiveError."""
        return [load_run(self.run_folder(pair, arm)) for pair in self.done_pairs() for arm in ARMS]

    def points(self) -> list[dict[str, Any]]:
        """Each run's figures in the order of `runs`, varied by pair and side; raises ArchiveError."""
        numbers = [pair + 1 for pair in self.done_pairs() for _ in ARMS]
        return [
            {**(run.manifest.certificate or {}), "varied": {"pair": number, **run.manifest.varied}}
            for number, run in zip(numbers, self.runs(), strict=True)
        ]

    def _is_saved(self, pair: int, arm: Arm) -> bool:
        return (self.run_folder(pair, arm) / MANIFEST_NAME).is_file()


def load_comparison(folder: Path) -> StoredComparison:
    """Open a comparison for reading; raises ArchiveError that names file and remedy."""
    where = folder / COMPARISON_NAME
    document = documents.read_document(where)
    plan = document.get("plan")
    if not isinstance(plan, dict) or not _is_count(plan.get("pairs")):
        raise ArchiveError(f"{where}: plan is {plan!r:.80}; an object with a number of pairs is needed: {_REMEDY}")
    if not all(isinstance(plan.get(arm), dict) for arm in ARMS):
        raise ArchiveError(f"{where}: the plan lacks a side; it needs an object a and an object b: {_REMEDY}")
    name, created = str(document.get("id") or folder.name), str(document.get("created") or "")
    if created:
        check_created(created, where)
    return StoredComparison(
        path=folder, id=name, created=created, simulated=document.get("simulated") is True, plan=plan
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
