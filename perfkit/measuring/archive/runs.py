"""Which runs and scans lie in a folder, and which one does a person mean?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive.durable import is_torn
from perfkit.measuring.archive.folder import load_run
from perfkit.measuring.archive.format import MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.storedscan import load_scan

_SHOWN_IDS = 10
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One line of the list. Of a broken folder only id, path, kind, bytes and reason are known."""

    id: str
    path: Path
    kind: Literal["run", "scan"]
    state: Literal["complete", "unfinished", "broken"]
    bytes: int
    created: str = ""
    title: str = ""
    model: str = ""
    simulated: bool = False
    points: int = 0
    grades: Mapping[str, int] = field(default_factory=dict)  # grade -> points that carry it
    reason: str = ""  # what is wrong, or left to do, and the remedy


def list_runs(folder: Path) -> list[RunEntry]:
    """The runs and scans in a folder (or the one that it is), newest first, broken ones last.

    Raises ConfigError when there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give the one that runs were saved to (--out)")
    own = _entry(folder)
    if own is not None:
        return [own]
    entries = [entry for path in sorted(folder.iterdir()) if path.is_dir() and (entry := _entry(path))]
    return sorted(entries, key=lambda entry: _moment(entry.created), reverse=True)


def find_run(folder: Path, wanted: str) -> RunEntry:
    """The run or scan with an id or folder name, or the only one whose id starts so; raises ConfigError.

    For use as a library; the commands take folders.
    """
    entries = list_runs(folder)
    exact = [entry for entry in entries if wanted in (entry.id, entry.path.name)]
    found = exact or [entry for entry in entries if wanted and entry.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(entry.id for entry in (found or entries)[:_SHOWN_IDS]) or "none"
    problem = f"{len(found)} runs in {folder} match {wanted!r}" if found else f"no run in {folder} matches {wanted!r}"
    raise ConfigError(f"{problem}; take one of: {known}")


def _entry(path: Path) -> RunEntry | None:
    try:
        if is_torn(path):
            raise ArchiveError("left by a process that was killed while saving, unless one saves right now; remove it")
        if os.path.lexists(path / SCAN_NAME):
            return _scan_entry(path)
        if os.path.lexists(path / MANIFEST_NAME):
            return _run_entry(path)
    except ArchiveError as error:
        kind: Literal["run", "scan"] = "scan" if os.path.lexists(path / SCAN_NAME) else "run"
        return RunEntry(id=path.name, path=path, kind=kind, state="broken", bytes=_bytes_below(path), reason=str(error))
    return None


def _run_entry(path: Path) -> RunEntry:
    manifest = load_run(path).manifest
    return RunEntry(
        id=manifest.id,
        path=path,
        kind="run",
        state="complete",
        bytes=_bytes_below(path),
        created=manifest.created,
        title=manifest.title,
        model=_model_of(manifest.settings),
        simulated=manifest.simulated,
        points=1,
        grades=_grades([manifest.certificate or {}]),
    )


def _scan_entry(path: Path) -> RunEntry:
    scan = load_scan(path)
    header, pending = scan.header, len(scan.pending_parts())
    return RunEntry(
        id=header.id,
        path=path,
        kind="scan",
        state="complete" if scan.is_finished else "unfinished",
        bytes=_bytes_below(path),
        created=header.created,
        title=header.title,
        model=_model_of(header.plan["points"][0].get("settings")),
        simulated=header.simulated,
        points=len(header.plan["points"]),
        grades=_grades(header.points),
        reason="" if scan.is_finished else f"{pending} of {len(scan.parts())} parts to measure; go on with --resume",
    )


def _model_of(settings: Any) -> str:
    model = settings.get("model") if isinstance(settings, Mapping) else None
    return model if isinstance(model, str) else ""


def _grades(certificates: Any) -> dict[str, int]:
    grades = (point.get("grade") for point in certificates if isinstance(point, Mapping))
    return dict(Counter(grade for grade in grades if isinstance(grade, str)))


def _moment(created: str) -> datetime:
    moment = datetime.fromisoformat(created) if created else _EARLIEST
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _bytes_below(folder: Path) -> int:
    # A file may vanish while a scan at work in another process moves on.
    paths = (Path(parent, name) for parent, _, files in os.walk(folder) for name in files)
    return sum(os.lstat(path).st_size for path in paths if os.path.lexists(path))
