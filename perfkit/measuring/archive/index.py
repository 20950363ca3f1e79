"""What lies in an archive, without opening folders that have not changed since somebody asked last?

`index.sqlite` beside the run folders keeps each folder's line of the list and a stamp of the files
that the line was read from. It is never the truth: whoever asks looks at every folder's stamp first,
so an entry that is missing, old or of a folder that is gone is put right on the way, and an index
that is damaged, locked or of another version is made anew or done without. Nothing writes it while a
measurement runs. Several processes may bring it up to date at once: SQLite's write-ahead log keeps
each update whole, and the slower of two leaves at worst a line that the next one reads again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from perfkit.measuring.archive.entries import RunEntry
from perfkit.measuring.archive.format import COMPARISON_NAME, INDEX_NAME, MANIFEST_NAME, SCAN_NAME
from perfkit.measuring.archive.storedcomparison import ARMS
from perfkit.measuring.archive.storedscan import PARTS_FOLDER, POINTS_FOLDER

_VERSION = 2  # of the table below; any other is made anew
_LOCKED_S = 5.0  # how long another process's update is waited for
_STAMPED = ("", MANIFEST_NAME, SCAN_NAME, PARTS_FOLDER, POINTS_FOLDER, COMPARISON_NAME, *ARMS)
_NAMES = tuple(item.name for item in fields(RunEntry) if item.name != "path")
_WHOLE = {"bytes", "simulated", "points"}
_COLUMNS = ", ".join(f'"{name}" {"INTEGER" if name in _WHOLE else "TEXT"} NOT NULL' for name in _NAMES)
_TABLE = f"CREATE TABLE runs (place TEXT PRIMARY KEY, stamp TEXT NOT NULL, {_COLUMNS}) STRICT"
_QUOTED = ", ".join(f'"{name}"' for name in _NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the index knows of one folder: its line, and the stamp of the files behind it."""

    stamp: str
    entry: RunEntry


def stamp_of(path: Path) -> str:
    """Tells whether a result was changed: inode, size and time of change of what its line is read from."""
    return " ".join(_stamp(path / name) for name in _STAMPED)


def read_index(folder: Path) -> dict[str, Line]:
    """Each known folder's line by its place below `folder`; empty when there is no usable index."""
    if not (folder / INDEX_NAME).is_file():
        return {}
    try:
        with _open(folder) as connection:
            if not _is_current(connection):
                return {}
            rows = connection.execute(f"SELECT place, stamp, {_QUOTED} FROM runs").fetchall()
        return {row[0]: Line(stamp=row[1], entry=_entry(folder / row[0], row[2:])) for row in rows}
    except sqlite3.OperationalError:  # locked, unreadable, another table: `update_index` sees to it
        return {}
    except (sqlite3.DatabaseError, ValueError, TypeError):
        _forget(folder)
        return {}


def update_index(folder: Path, fresh: Mapping[str, Line], gone: Iterable[str]) -> bool:
    """Put lines in and take others out, all or none; returns whether it was possible."""
    rows = [(place, line.stamp, *_values(line.entry)) for place, line in fresh.items()]
    marks = ", ".join("?" * (len(_NAMES) + 2))
    if (folder / INDEX_NAME).is_symlink():
        return False
    try:
        with _open(folder) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            if not _is_current(connection):
                connection.execute("DROP TABLE IF EXISTS runs")
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.executemany(f"INSERT OR REPLACE INTO runs VALUES ({marks})", rows)
            connection.executemany("DELETE FROM runs WHERE place = ?", [(place,) for place in gone])
            connection.execute("COMMIT")
    except sqlite3.OperationalError:  # a full, read-only or busy disk: the list is right without an index
        return False
    except sqlite3.DatabaseError:
        _forget(folder)
        return False
    return True


@contextlib.contextmanager
def _open(folder: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(folder / INDEX_NAME, timeout=_LOCKED_S, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _is_current(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    made = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'runs'").fetchone()
    return bool(version == _VERSION and made == (_TABLE,))


def _forget(folder: Path) -> None:
    """Remove a damaged index; the next update makes a new one."""
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            (folder / f"{INDEX_NAME}{suffix}").unlink(missing_ok=True)


def _values(entry: RunEntry) -> list[object]:
    found: list[object] = []
    for name in _NAMES:
        value = getattr(entry, name)
        found.append(json.dumps(value) if name == "grades" else value)
    return found


def _entry(path: Path, values: tuple[object, ...]) -> RunEntry:
    known = dict(zip(_NAMES, values, strict=True))
    grades, simulated = json.loads(str(known.pop("grades"))), bool(known.pop("simulated"))
    return RunEntry(path=path, grades=grades, simulated=simulated, **known)  # type: ignore[arg-type]


def _stamp(path: Path) -> str:
    try:
        facts = os.lstat(path)
    except OSError:
        return "-"
    return f"{facts.st_ino}:{facts.st_size}:{facts.st_ctime_ns}"
