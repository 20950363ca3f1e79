"""Which runs, scans and comparisons lie in a folder, and which one does a person mean?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from perfkit.errors import ConfigError
from perfkit.measuring.archive.entries import RunEntry, kind_of, read_entry
from perfkit.measuring.archive.format import DEMO_NAME
from perfkit.measuring.archive.index import Line, read_index, stamp_of, update_index

_SHOWN_IDS = 10
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def list_runs(folder: Path, remember: bool = False) -> list[RunEntry]:
    """The runs, scans and comparisons in a folder (or the one that it is), newest first, broken ones last.

    Those of a demo in the folder are among them. With `remember` an index beside them is brought up to
    date, which spares reading what has not changed since. Raises ConfigError when there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give the one that runs were saved to (--out)")
    own = read_entry(folder)
    if own is not None:
        return [own]
    places = _places(folder)
    entries = _indexed(folder, places) if remember else [entry for path in places if (entry := read_entry(path))]
    return sorted(entries, key=lambda entry: moment_of(entry.created), reverse=True)


def find_run(folder: Path, wanted: str) -> RunEntry:
    """The result with an id or folder name, the only one whose id starts so, or the one at a path.

    Raises ConfigError that names what there is.
    """
    at_path = read_entry(Path(wanted)) if wanted and kind_of(Path(wanted)) else None
    if at_path is not None:
        return at_path
    entries = list_runs(folder, remember=True)
    exact = [entry for entry in entries if wanted in (entry.id, entry.path.name)]
    found = exact or [entry for entry in entries if wanted and entry.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    raise ConfigError(_not_found(folder, wanted, entries, found))


def select_runs(entries: Sequence[RunEntry], model: str | None, since: datetime | None) -> list[RunEntry]:
    """Those of a model (any of its variants: `simulated` takes `simulated:gpu`) created at or after a moment."""
    return [
        entry
        for entry in entries
        if (model is None or model in (entry.model, entry.model.partition(":")[0]))
        and (since is None or moment_of(entry.created) >= since)
    ]


def moment_of(created: str) -> datetime:
    """A created text as a moment; the earliest there is for a folder that tells none."""
    moment = datetime.fromisoformat(created) if created else _EARLIEST
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _places(folder: Path) -> list[Path]:
    """The folders that may be a result: those in `folder`, and those in a demo that lies there."""
    below = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir())
    demos = [path for path in below if (path / DEMO_NAME).is_file()]
    return below + [path for demo in demos for path in sorted(demo.iterdir()) if path.is_dir()]


def _indexed(folder: Path, places: Sequence[Path]) -> list[RunEntry]:
    known = read_index(folder)
    found: list[RunEntry] = []
    fresh: dict[str, Line] = {}
    for path in places:
        place = str(path.relative_to(folder))
        stamp, line = stamp_of(path), known.pop(place, None)
        entry = line.entry if line is not None and line.stamp == stamp else read_entry(path)
        if entry is None:
            continue
        found.append(entry)
        if entry.state == "broken":  # is looked at again each time: it may be repaired anywhere in its folder
            continue
        if line is None or line.stamp != stamp:
            fresh[place] = Line(stamp=stamp, entry=entry)
    if fresh or known:
        update_index(folder, fresh, known)
    return found


def _not_found(folder: Path, wanted: str, entries: Sequence[RunEntry], found: Sequence[RunEntry]) -> str:
    known = ", ".join(entry.id for entry in (found or entries)[:_SHOWN_IDS]) or "none"
    problem = f"{len(found)} runs in {folder} match {wanted!r}" if found else f"no run in {folder} matches {wanted!r}"
    return f"{problem}; take one of: {known}"
