"""What does a run certify of itself? One record of entries: what was looked at, how it went, what failing costs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from perfkit.measuring.analysis.grading import Grade, grade

Status = Literal["pass", "fail", "recorded", "not applicable"]
Cost = Literal["void", "unsteady", "short", "nothing"]
Figures = Mapping[str, float | str | None]

STATUSES: tuple[Status, ...] = ("pass", "fail", "recorded", "not applicable")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that a run was held against.

    `figures` carry their units in their names; the first is the one that was held against `threshold`, whose
    `origin` says where it comes from. `costs` is the grade that failing leaves the run at most. `reason` says why
    it failed, or why it does not apply; a pass and a record may carry a remark there.
    """

    name: str
    status: Status
    figures: Figures
    threshold: float | None
    origin: str
    costs: Cost
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self) | {"figures": dict(self.figures)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """All entries of a run; its grade follows from those that failed."""

    entries: tuple[Entry, ...]

    @property
    def grade(self) -> Grade:
        """The worst cost of a failed entry, with every failure's reason, the worst first."""
        return grade(self._reasons("void"), self._reasons("unsteady"), self._reasons("short"))

    def withheld(self) -> Certificate:
        """Without figures that a run of this grade does not have: none of a void one, no P99 of an unsteady one."""
        label = self.grade.label
        if label not in ("void", "unsteady"):
            return self
        return Certificate(entries=tuple(_withheld(one, label) for one in self.entries))

    def _reasons(self, cost: Cost) -> list[str]:
        return [one.reason for one in self.entries if one.status == "fail" and one.costs == cost]

    def to_json(self) -> dict[str, Any]:
        """As `run.json` and `--json` carry it."""
        counts = Counter(one.status for one in self.entries)
        return {
            "grade": self.grade.label,
            "counts": {status: counts[status] for status in STATUSES},
            "entries": [one.to_json() for one in self.entries],
        }


_RESULTS = ("precision", "coordinated omission")


def _withheld(entry: Entry, label: str) -> Entry:
    is_result = entry.name in _RESULTS and entry.status != "not applicable"
    if not is_result or (label == "unsteady" and not any(name.startswith("p99") for name in entry.figures)):
        return entry
    what = "result" if label == "void" else "P99"
    return not_applicable(entry.name, entry.origin, entry.costs, f"{label}: there is no {what}", entry.threshold)


def held(cost: Cost, failures: Iterable[str]) -> tuple[Status, Cost, str]:
    """Status, cost and reason of an entry that passes when nothing is wrong."""
    reason = "; ".join(failures)
    return ("fail" if reason else "pass"), cost, reason


def recorded(name: str, figures: Figures, origin: str, remark: str = "") -> Entry:
    """Something that is written down beside the numbers and gates nothing."""
    return Entry(
        name=name, status="recorded", figures=figures, threshold=None, origin=origin, costs="nothing", reason=remark
    )


def not_applicable(name: str, origin: str, costs: Cost, why: str, threshold: float | None = None) -> Entry:
    """Something that this run cannot be held against, and why."""
    return Entry(
        name=name, status="not applicable", figures={}, threshold=threshold, origin=origin, costs=costs, reason=why
    )
