"""How does a scan survive being killed at any instant, and go on with at most one part to redo?

While a scan runs, each part (one point in one round) is a run folder of its own, on the disk before
the next part starts:

    scan.json            the plan, as it was made at the start; status; results once finished
    scan.lock            held by the process that writes
    rounds/<round>-<point>/   one run folder a part
    points/<point>/      one run folder a point with its rounds pooled, from `finish` on

`finish` writes all points, then turns `scan.json` to *finished* in one rename, then removes the
parts. So at every instant each measured part lies whole in one of the two places: before the rename
`points/` is disposable, after it `rounds/` is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import documents, durable, scanplan
from perfkit.measuring.archive.folder import RunContents, save_run
from perfkit.measuring.archive.format import FORMAT_VERSION, MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.lock import SCAN_LOCK, Writer, locked
from perfkit.measuring.archive.manifest import check_created
from perfkit.measuring.archive.scanplan import Part
from perfkit.measuring.archive.storedscan import (
    FINISHED,
    PARTS_FOLDER,
    POINTS_FOLDER,
    ScanHeader,
    StoredScan,
    load_scan,
)


class ScanWriter(Writer):
    """A scan that this process writes, from `create_scan` or `open_scan` until `close`. One thread uses it."""

    def __init__(self, stored: StoredScan, lock: int) -> None:
        super().__init__(lock)
        self.stored = stored

    def done_parts(self) -> tuple[Part, ...]:
        """The parts that are measured and on the disk, in order of execution."""
        return self.stored.done_parts()

    def pending_parts(self) -> tuple[Part, ...]:
        """The parts that are still to measure, in order of execution."""
        return self.stored.pending_parts()

    def pooled(self, point: int) -> RunContents:
        """All that is on the disk about a point, its rounds pooled; raises ArchiveError when nothing is."""
        return self.stored.pooled(point)

    def save_part(self, part: Part, contents: RunContents) -> Path:
        """Save what one part measured; on the disk when it returns. Raises ArchiveError."""
        if part not in self.stored.parts():
            raise ArchiveError(f"{part} is not in the plan of {self.stored.path}; take one of pending_parts()")
        return save_run(self.stored.part_folder(part), contents)

    def finish(self, points: Sequence[Mapping[str, Any]], summary: Mapping[str, Any] | None = None) -> None:
        """Save each point's pooled run with its certificate, mark the scan finished, remove the parts.

        Raises ArchiveError while parts are pending, or when the disk refuses; the parts stay then.
        """
        stored = self.stored
        self._require_finishable(points)
        durable.remove(stored.path / POINTS_FOLDER)  # of an attempt that was cut short
        for index, certificate in enumerate(points):
            contents = stored.pooled(index)
            manifest = dataclasses.replace(contents.manifest, certificate=certificate)
            save_run(stored.point_folder(index), dataclasses.replace(contents, manifest=manifest))
        header = dataclasses.replace(stored.header, status=FINISHED, points=tuple(points), summary=summary or {})
        self.stored = _write(stored.path, header)
        durable.remove(stored.path / PARTS_FOLDER)

    def _require_finishable(self, points: Sequence[Mapping[str, Any]]) -> None:
        stored, planned = self.stored, len(self.stored.header.plan["points"])
        pending = stored.pending_parts()
        if stored.is_finished or pending:
            state = f"has {len(pending)} parts to measure" if pending else "is finished already"
            raise ArchiveError(f"{stored.path} {state}; finish it once, when no part is pending")
        if len(points) != planned:
            raise ArchiveError(
                f"{len(points)} certificates came for {planned} points of {stored.path}; give one a point"
            )


def create_scan(folder: Path, header: ScanHeader) -> ScanWriter:
    """Start a scan in a folder of its own: its plan is on the disk when this returns.

    Raises ConfigError when the folder holds a scan or a run already, ArchiveError when the disk refuses.
    """
    normal = dataclasses.replace(header, plan=scanplan.normalise(header.plan, folder / SCAN_NAME))
    check_created(header.created, folder / SCAN_NAME)
    with locked(folder, SCAN_LOCK, "scan") as lock:
        for name in (SCAN_NAME, MANIFEST_NAME):
            if (folder / name).exists():
                raise ConfigError(f"{folder} holds {name} already; go on with it by --resume, or choose another --out")
        _remove_leftovers(folder)
        return ScanWriter(_write(folder, normal), lock)


def open_scan(folder: Path, plan: Mapping[str, Any] | None) -> ScanWriter:
    """Take a scan up again, cleaning up behind a killed process; `plan` must be the stored one, or None.

    Raises ConfigError that names what differs in the plan, or that there is nothing to resume;
    ArchiveError when another process writes the scan or its file is damaged.
    """
    if not (folder / SCAN_NAME).exists():
        raise ConfigError(f"{folder} holds no scan to resume; leave out --resume to start one there")
    with locked(folder, SCAN_LOCK, "scan") as lock:
        stored = load_scan(folder)
        if plan is not None:
            scanplan.require_same(scanplan.normalise(plan, folder / SCAN_NAME), stored.header.plan, folder)
        _remove_leftovers(folder)
        if stored.is_finished:
            durable.remove(folder / PARTS_FOLDER)
            return ScanWriter(stored, lock)
        return ScanWriter(_write(folder, dataclasses.replace(stored.header, resumes=stored.header.resumes + 1)), lock)


def _write(folder: Path, header: ScanHeader) -> StoredScan:
    document = {"schema": FORMAT_VERSION, "simulated": header.simulated, **dataclasses.asdict(header)}
    durable.replace_file(folder / SCAN_NAME, documents.encode(document, "the scan"))
    return StoredScan(path=folder, header=header)


def _remove_leftovers(folder: Path) -> None:
    for parent in (folder / PARTS_FOLDER, folder / POINTS_FOLDER):
        if parent.is_symlink():
            raise ArchiveError(f"{parent} is a link, which no scan makes; do not trust this folder")
    for parent in (folder, folder / PARTS_FOLDER):
        durable.remove_torn(parent)
