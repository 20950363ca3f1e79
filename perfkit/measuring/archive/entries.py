"""What does one folder of an archive come to, on one line of the list?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.durable import is_torn
from perfkit.measuring.archive.folder import load_run
from perfkit.measuring.archive.format import COMPARISON_NAME, MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.pins import pin_of
from perfkit.measuring.archive.storedcomparison import load_comparison
from perfkit.measuring.archive.storedscan import load_scan

Kind = Literal["run", "scan", "comparison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One line of the list. Of a broken folder only id, path, kind, bytes and reason are known."""

    id: str
    path: Path
    kind: Kind
    state: Literal["complete", "unfinished", "broken"]
    bytes: int
    created: str = ""
    title: str = ""
    model: str = ""
    simulated: bool = False
    points: int = 0  # of a comparison: its runs so far
    grades: Mapping[str, int] = field(default_factory=dict)  # grade -> points that carry it
    commit: str = ""  # of the code under test, with a + where it was changed since; empty when not known
    pinned: str = ""  # why it must stay; empty when it need not
    reason: str = ""  # what is wrong, or left to do, and the remedy


def kind_of(path: Path) -> Kind | None:
    """What a folder says that it is; None when it says nothing."""
    names: tuple[tuple[Kind, str], ...] = (
        ("scan", SCAN_NAME),
        ("comparison", COMPARISON_NAME),
        ("run", MANIFEST_NAME),
    )
    return next((kind for kind, name in names if os.path.lexists(path / name)), None)


def read_entry(path: Path) -> RunEntry | None:
    """The line of one folder, read from its own files; None when it is no result and not torn."""
    kind = kind_of(path)
    try:
        if is_torn(path):
            raise ArchiveError("left by a process that was killed while saving, unless one saves right now; remove it")
        if kind is None:
            return None
        return _READERS[kind](path)
    except ArchiveError as error:
        size = bytes_below(path)
        return RunEntry(id=path.name, path=path, kind=kind or "run", state="broken", bytes=size, reason=str(error))


def bytes_below(folder: Path) -> int:
    """What a folder's files hold together. One may vanish while a scan at work in another process moves on."""
    paths = (Path(parent, name) for parent, _, files in os.walk(folder) for name in files)
    return sum(os.lstat(path).st_size for path in paths if os.path.lexists(path))


def _run_entry(path: Path) -> RunEntry:
    manifest = load_run(path).manifest
    return RunEntry(
        id=manifest.id,
        path=path,
        kind="run",
        state="complete",
        bytes=bytes_below(path),
        created=manifest.created,
        title=manifest.title,
        model=_model_of(manifest.settings),
        simulated=manifest.simulated,
        points=1,
        grades=_grades([manifest.certificate or {}]),
        commit=_commit_of(manifest.source),
        pinned=pin_of(path),
    )


def _scan_entry(path: Path) -> RunEntry:
    scan = load_scan(path)
    header, pending = scan.header, len(scan.pending_parts())
    return RunEntry(
        id=header.id,
        path=path,
        kind="scan",
        state="complete" if scan.is_finished else "unfinished",
        bytes=bytes_below(path),
        created=header.created,
        title=header.title,
        model=_model_of(header.plan["points"][0].get("settings")),
        simulated=header.simulated,
        points=len(header.plan["points"]),
        grades=_grades(header.points),
        commit=_commit_of(scan.run(0).manifest.source) if scan.is_finished else "",
        pinned=pin_of(path),
        reason="" if scan.is_finished else f"{pending} of {len(scan.parts())} parts to measure; go on with --resume",
    )


def _comparison_entry(path: Path) -> RunEntry:
    stored = load_comparison(path)
    runs, left = stored.runs(), stored.pairs - len(stored.done_pairs())
    return RunEntry(
        id=stored.id,
        path=path,
        kind="comparison",
        state="unfinished" if left else "complete",
        bytes=bytes_below(path),
        created=stored.created,
        title=" against ".join(reversed(stored.labels)),
        model=_model_of(stored.plan["b"].get("settings")),
        simulated=stored.simulated,
        points=len(runs),
        grades=_grades([run.manifest.certificate or {} for run in runs]),
        commit=_commit_of(runs[0].manifest.source) if runs else "",
        pinned=pin_of(path),
        reason=f"{left} of {stored.pairs} pairs to measure; go on with --resume" if left else "",
    )


_READERS: dict[Kind, Callable[[Path], RunEntry]] = {
    "run": _run_entry,
    "scan": _scan_entry,
    "comparison": _comparison_entry,
}


def _model_of(settings: Any) -> str:
    model = settings.get("model") if isinstance(settings, Mapping) else None
    return model if isinstance(model, str) else ""


def _commit_of(source: Mapping[str, Any]) -> str:
    commit = source.get("commit")
    return f"{commit}{'+' if source.get('dirty') else ''}" if isinstance(commit, str) else ""


def _grades(certificates: Any) -> dict[str, int]:
    grades = (point.get("grade") for point in certificates if isinstance(point, Mapping))
    return dict(Counter(grade for grade in grades if isinstance(grade, str)))
