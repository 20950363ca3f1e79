"""Which runs may go, and how does one go without leaving half of it?"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.entries import RunEntry, kind_of, read_entry
from perfkit.measuring.archive.format import DEMO_NAME
from perfkit.measuring.archive.lock import COMPARISON_LOCK, SCAN_LOCK
from perfkit.measuring.archive.runs import moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One line of an archive: whether it goes, and why it does or does not."""

    entry: RunEntry
    goes: bool
    why: str


def judge_runs(entries: Sequence[RunEntry], keep: int | None, before: datetime | None) -> tuple[Verdict, ...]:
    """What goes of a list (newest first) when the newest `keep` stay, all since `before`, or what either saves.

    What is pinned, broken, unfinished or part of a demo stays in any case, and counts as none of the newest.
    Raises ConfigError when nothing says what may go.
    """
    if keep is None and before is None:
        raise ConfigError("nothing says what may go; give --keep N, --older-than AGE, or both")
    if keep is not None and keep < 0:
        raise ConfigError(f"--keep is {keep}; give 0 or more")
    verdicts: list[Verdict] = []
    place = 0
    for entry in entries:
        stays = _held(entry)
        if not stays:
            stays = _chosen(entry, place, keep, before)
            place += 1
        verdicts.append(Verdict(entry=entry, goes=not stays, why=stays or "old enough to go"))
    return tuple(verdicts)


def remove_run(path: Path) -> None:
    """Remove a run, scan or comparison; killed meanwhile, it leaves the whole, or a torn folder that no reader takes
    for one.

    Raises ArchiveError for anything that is not whole, is pinned or is being written: it stays.
    """
    if path.is_symlink():
        raise ArchiveError(f"{path} is a link; remove the run where it lies, and the link by hand")
    entry = read_entry(path) if path.is_dir() and kind_of(path) else None
    if entry is None or entry.state != "complete":
        state = f"is {entry.state}" if entry else "is no run, scan or comparison"
        raise ArchiveError(f"{path} {state}; only whole ones are removed, the rest by hand")
    if entry.pinned:
        raise ArchiveError(f"{path} is pinned ({entry.pinned}); perfkit runs unpin {entry.id} first")
    with _unwritten(path):
        torn = durable.temporary_beside(path)
        try:
            path.rename(torn)
            durable.sync(path.parent)
        except OSError as error:
            raise durable.explain(error, path, lambda: 0) from error
        durable.remove(torn)


def _held(entry: RunEntry) -> str:
    """Why an entry stays whatever its age; empty when it need not."""
    if entry.pinned:
        return f"pinned: {entry.pinned}"
    if entry.state != "complete":
        return f"{entry.state}: {'go on with --resume, or ' if entry.state == 'unfinished' else ''}remove it by hand"
    if entry.path.is_symlink():
        return "a link to elsewhere"
    if (entry.path.parent / DEMO_NAME).is_file():
        return f"part of the demo in {entry.path.parent}; remove that by hand"
    return ""


def _chosen(entry: RunEntry, place: int, keep: int | None, before: datetime | None) -> str:
    if keep is not None and place < keep:
        return f"among the newest {keep}"
    if before is not None and moment_of(entry.created) >= before:
        return "not old enough"
    return ""


@contextlib.contextmanager
def _unwritten(path: Path) -> Iterator[None]:
    """Holds the folder's lock meanwhile; a run has none, and needs none once it is whole."""
    where = next((path / name for name in (SCAN_LOCK, COMPARISON_LOCK) if (path / name).exists()), None)
    if where is None:
        yield
        return
    try:
        lock = os.open(where, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise durable.explain(error, where, lambda: 0) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ArchiveError(f"another process writes {path}; it stays") from error
    finally:
        os.close(lock)
