"""What does a scan intend to measure, in which order, and is a resumed scan still the same one?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import documents

_SHOWN_DIFFERENCES = 5


class _Absent:
    """Stands for an entry that a plan has not got; equal to nothing that JSON can hold."""

    def __repr__(self) -> str:
        return "absent"


_ABSENT = _Absent()


class Part(NamedTuple):
    """One point in one round: what is measured, and saved, in one go."""

    round: int
    point: int

    @property
    def folder_name(self) -> str:
        """Where its run lies below the scan's folder, as `003-012`."""
        return f"{self.round:03d}-{self.point:03d}"


def normalise(plan: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """The plan as JSON gives it back, checked; raises ArchiveError.

    It needs `points` (a list of objects) and `order` (for each round, every point's index once, in
    order of execution); all else is the caller's and is kept.
    """
    plain = documents.decode(documents.encode(plan, "the plan of the scan"), where)
    points, order = plain.get("points"), plain.get("order")
    if not isinstance(points, list) or not points or not all(isinstance(point, dict) for point in points):
        raise ArchiveError(f"{where}: points of the plan is {points!r:.80}; a list of at least one object is needed")
    every = list(range(len(points)))
    if not isinstance(order, list) or not order or not all(_is_permutation(indices, every) for indices in order):
        raise ArchiveError(
            f"{where}: order of the plan is {order!r:.80}; each round must list the indices 0 to {every[-1]} once"
        )
    return plain


def _is_permutation(indices: Any, every: list[int]) -> bool:
    return isinstance(indices, list) and all(type(index) is int for index in indices) and sorted(indices) == every


def parts_of(plan: Mapping[str, Any]) -> tuple[Part, ...]:
    """Every part of a plan in order of execution."""
    return tuple(Part(index, point) for index, points in enumerate(plan["order"]) for point in points)


def require_same(given: Mapping[str, Any], stored: Mapping[str, Any], folder: Path) -> None:
    """Raise ConfigError that names what differs, unless both plans are the same."""
    found = list(itertools.islice(differences(given, stored), _SHOWN_DIFFERENCES + 1))
    if not found:
        return
    shown = "; ".join(found[:_SHOWN_DIFFERENCES]) + ("; and more" if len(found) > _SHOWN_DIFFERENCES else "")
    raise ConfigError(
        f"{folder} holds a scan with another plan: {shown}. Resume with the arguments it was started with, "
        "or start a new scan with another --out"
    )


def differences(given: Any, stored: Any, name: str = "") -> Iterator[str]:
    """Each place where two plans differ, as a line; nothing when they are the same."""
    if isinstance(given, dict) and isinstance(stored, dict):
        for key in sorted({*given, *stored}):
            below = f"{name}.{key}" if name else key
            yield from differences(given.get(key, _ABSENT), stored.get(key, _ABSENT), below)
    elif isinstance(given, list) and isinstance(stored, list):
        for index, (one, other) in enumerate(itertools.zip_longest(given, stored, fillvalue=_ABSENT)):
            yield from differences(one, other, f"{name}[{index}]")
    elif given != stored or isinstance(given, bool) != isinstance(stored, bool):
        yield f"{name} is {given!r:.60}, there {stored!r:.60}"
