"""What does a scan hold so far? Reading it, finished or not, without getting in its writer's way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import documents, scanplan
from perfkit.measuring.archive.folder import RunContents, StoredRun, contents_of, load_run
from perfkit.measuring.archive.format import MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.manifest import check_created
from perfkit.measuring.archive.pooling import pool
from perfkit.measuring.archive.scanplan import Part

RUNNING, FINISHED = "running", "finished"
PARTS_FOLDER, POINTS_FOLDER = "rounds", "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanHeader:
    """What `scan.json` holds."""

    id: str
    created: str  # ISO 8601 with its zone
    simulated: bool
    title: str = ""
    plan: Mapping[str, Any]
    status: str = RUNNING
    resumes: int = 0  # how often a killed scan was taken up again: its rounds saw different processes
    points: Sequence[Mapping[str, Any]] = ()  # each point's certificate, once finished
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what the scan found as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScan:
    """A scan on the disk, for reading; takes no lock."""

    path: Path
    header: ScanHeader

    @property
    def is_finished(self) -> bool:
        """Whether the points are pooled and the parts gone."""
        return self.header.status == FINISHED

    def parts(self) -> tuple[Part, ...]:
        """Every part of the plan in order of execution."""
        return scanplan.parts_of(self.header.plan)

    def done_parts(self) -> tuple[Part, ...]:
        """The parts that are measured and on the disk, in order of execution."""
        return self.parts() if self.is_finished else tuple(part for part in self.parts() if self._is_saved(part))

    def pending_parts(self) -> tuple[Part, ...]:
        """The parts that are still to measure, in order of execution."""
        done = set(self.done_parts())
        return tuple(part for part in self.parts() if part not in done)

    def part(self, part: Part) -> StoredRun:
        """One part of an unfinished scan; raises ArchiveError."""
        return load_run(self.part_folder(part))

    def run(self, point: int) -> StoredRun:
        """A point's run in a finished scan; raises ArchiveError."""
        if not self.is_finished:
            raise ArchiveError(f"{self.path} is not finished; take it up again with --resume, or read pooled({point})")
        return load_run(self.point_folder(point))

    def pooled(self, point: int) -> RunContents:
        """All that is on the disk about a point, its rounds pooled; raises ArchiveError when nothing is."""
        if self.is_finished:
            return contents_of(self.run(point))
        saved = sorted(part for part in self.done_parts() if part.point == point)
        if not saved:
            raise ArchiveError(f"{self.path} holds nothing of point {point} yet; take the scan up with --resume")
        return pool([(part.round, self.part(part)) for part in saved])

    def _is_saved(self, part: Part) -> bool:
        return (self.part_folder(part) / MANIFEST_NAME).is_file()

    def part_folder(self, part: Part) -> Path:
        """Where a part's run lies while the scan is unfinished."""
        return self.path / PARTS_FOLDER / part.folder_name

    def point_folder(self, point: int) -> Path:
        """Where a point's run lies once the scan is finished."""
        return self.path / POINTS_FOLDER / f"{point:03d}"


def load_scan(folder: Path) -> StoredScan:
    """Open a scan for reading; raises ArchiveError that names file and remedy."""
    where = folder / SCAN_NAME
    document = documents.read_document(where)
    for name, kind in _TYPES.items():
        if not isinstance(document.get(name), kind):
            value = document.get(name)
            raise ArchiveError(
                f"{where}: {name} is {value!r:.80}; restore the file from a copy, or scan again elsewhere"
            )
    if document["status"] not in (RUNNING, FINISHED):
        raise ArchiveError(f"{where}: status is {document['status']!r:.80}; it is {RUNNING} or {FINISHED}")
    check_created(document["created"], where)
    plan = scanplan.normalise(document["plan"], where)
    known = {name: document[name] for name in _TYPES}
    return StoredScan(path=folder, header=ScanHeader(**{**known, "plan": plan}))


_TYPES: dict[str, type] = {
    "id": str,
    "created": str,
    "simulated": bool,
    "title": str,
    "plan": dict,
    "status": str,
    "resumes": int,
    "points": list,
    "summary": dict,
}
