"""How is a run saved as a folder, and opened again without trusting who wrote it?"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import documents, durable, tables
from perfkit.measuring.archive.format import MANIFEST_NAME, MEMBER_NAME, PAGE_NAME, PIN_NAME, TABLES
from perfkit.measuring.archive.manifest import FileFacts, Manifest, files_of, from_document, to_document

if TYPE_CHECKING:
    from pandas import DataFrame

_FOLDER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContents:
    """A run before it is saved: the manifest, and what goes into each file beside it."""

    manifest: Manifest
    tables: Mapping[str, DataFrame]  # requests, batches, series; one that could not be recorded is left out
    stacks: Mapping[str, Mapping[str, Any] | Path] = field(default_factory=dict)  # mode -> recording
    logs: Mapping[str, str | bytes | Path] = field(default_factory=dict)  # file name -> text, or the file to copy


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A saved run. The manifest is in memory; each table is read, and checked, when asked for."""

    path: Path
    manifest: Manifest
    files: Mapping[str, FileFacts]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that this run holds."""
        return tuple(name for name, table in TABLES.items() if table.file_name in self.files)

    @property
    def stacks(self) -> tuple[str, ...]:
        """The modes of the recorded stacks."""
        return tuple(name[len("stacks/") : -len(".json")] for name in self.files if name.startswith("stacks/"))

    @property
    def logs(self) -> tuple[str, ...]:
        """The names of the kept logs."""
        return tuple(name[len("logs/") :] for name in self.files if name.startswith("logs/"))

    def table(self, name: str) -> DataFrame:
        """One table, integers nullable; raises ArchiveError when it is absent or was changed."""
        file_name = TABLES[name].file_name if name in TABLES else name
        return tables.read_table(self.read(file_name), self.path / file_name)

    def columns(self, name: str, wanted: Sequence[str]) -> DataFrame:
        """Some columns of a table, texts as categories: for tables too long to hold whole. Raises as `table`."""
        file_name = TABLES[name].file_name if name in TABLES else name
        with self._open(file_name) as file:
            if _facts_of_open(file) != self.files[file_name]:
                raise self._changed(file_name)
            file.seek(0)
            return tables.read_columns(file, wanted, self.path / file_name)

    def stack(self, mode: str) -> dict[str, Any]:
        """The recorded stacks of one mode; raises ArchiveError."""
        name = f"stacks/{mode}.json"
        return documents.decode(self.read(name), self.path / name)

    def log(self, name: str) -> str:
        """What a process printed; bytes that are no UTF-8 are shown as escapes. Raises ArchiveError."""
        return self.read(f"logs/{name}").decode("utf-8", "backslashreplace")

    def read(self, name: str) -> bytes:
        """A file's bytes, exactly those that were saved; raises ArchiveError when they differ."""
        with self._open(name) as file:
            data = file.read()
        if _facts_of(data) != self.files[name]:
            raise self._changed(name)
        return data

    def _open(self, name: str) -> AbstractContextManager[BufferedReader]:
        if name not in self.files:
            raise ArchiveError(f"{self.path} holds no {name}; it holds {', '.join(self.files) or 'no files'}")
        where = self.path / name
        if where.parent.is_symlink() and where.parent != self.path:
            raise ArchiveError(f"{where.parent} is a link; restore the folder itself or measure again")
        return documents.open_regular(where, documents.MAX_MEMBER_BYTES)

    def _changed(self, name: str) -> ArchiveError:
        return ArchiveError(f"{self.path / name} is not what the run saved (its hash differs); restore it from a copy")


def save_run(folder: Path, contents: RunContents) -> Path:
    """Save a run as a new folder, whole or not at all; returns when it is on the disk.

    Raises ArchiveError when the folder exists or the disk refuses; earlier runs are untouched.
    """
    if not _FOLDER_NAME.fullmatch(folder.name):
        raise ArchiveError(f"run name {folder.name!r} is not usable; take letters, digits, dot, dash and underscore")
    arrows = {name: tables.to_arrow(name, frame) for name, frame in contents.tables.items()}
    texts = _member_bytes(contents)
    _refuse_unreadable(contents.manifest, folder / MANIFEST_NAME)
    with durable.new_folder(folder, lambda: _needed_bytes(contents, arrows, texts)) as temporary:
        for name, arrow in arrows.items():
            with open(temporary / TABLES[name].file_name, "xb") as file:
                tables.write_table(arrow, file)
        for name, data in texts.items():
            _write(temporary / name, data)
        for name, source in _member_paths(contents).items():
            _copy(source, temporary / name)
        files = {str(path.relative_to(temporary)): _facts_of_file(path) for path in _files_below(temporary)}
        document = to_document(contents.manifest, files)
        _write(temporary / MANIFEST_NAME, documents.encode(document, f"the manifest of {folder.name}"))
    return folder


def load_run(path: Path) -> StoredRun:
    """Open a saved run: reads the manifest only. Raises ArchiveError that names file and remedy."""
    where = path / MANIFEST_NAME
    document = documents.read_document(where)
    return StoredRun(path=path, manifest=from_document(document, where), files=files_of(document, where))


def verify_run(path: Path) -> list[str]:
    """Everything that is wrong with a saved run, one line each; empty when every byte is as saved.

    For use as a library; each reader checks by itself what it reads.
    """
    try:
        run = load_run(path)
    except ArchiveError as error:
        return [str(error)]
    problems = []
    for name in run.files:
        try:
            run.read(name)
        except ArchiveError as error:
            problems.append(str(error))
    found = {str(file.relative_to(path)) for file in _files_below(path)} - {MANIFEST_NAME, PIN_NAME, PAGE_NAME}
    problems += [f"{path / name} is not in the manifest; remove it" for name in sorted(found - set(run.files))]
    return problems


def contents_of(run: StoredRun) -> RunContents:
    """A saved run's contents in memory, ready to be changed and saved elsewhere; raises ArchiveError."""
    return RunContents(
        manifest=run.manifest,
        tables={name: run.table(name) for name in run.tables},
        stacks={mode: run.stack(mode) for mode in run.stacks},
        logs={name: run.read(f"logs/{name}") for name in run.logs},
    )


def _refuse_unreadable(manifest: Manifest, where: Path) -> None:
    document = documents.encode(to_document(manifest, {}), f"the manifest {where}")
    from_document(documents.decode(document, where), where)


def _member_bytes(contents: RunContents) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    for mode, recording in contents.stacks.items():
        if not isinstance(recording, Path):
            members[_member(f"stacks/{mode}.json")] = documents.encode(recording, f"stacks of mode {mode}")
    for name, text in contents.logs.items():
        if not isinstance(text, Path):
            members[_member(f"logs/{name}")] = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return members


def _member_paths(contents: RunContents) -> dict[str, Path]:
    stacks = {_member(f"stacks/{mode}.json"): path for mode, path in contents.stacks.items() if isinstance(path, Path)}
    logs = {_member(f"logs/{name}"): path for name, path in contents.logs.items() if isinstance(path, Path)}
    return stacks | logs


def _member(name: str) -> str:
    if not MEMBER_NAME.fullmatch(name):
        raise ArchiveError(f"a run cannot hold a file {name!r}; take letters, digits, dot, dash and underscore")
    return name


def _needed_bytes(contents: RunContents, arrows: Mapping[str, Any], texts: Mapping[str, bytes]) -> int:
    copied = sum(path.stat().st_size for path in _member_paths(contents).values())
    manifest = len(documents.encode(to_document(contents.manifest, {}), "the manifest"))
    return tables.needed_bytes(arrows) + sum(map(len, texts.values())) + copied + manifest


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)


def _copy(source: Path, path: Path) -> None:
    if not source.is_file():
        raise ArchiveError(
            f"{source} was to be kept with the run and is no file any more; leave it out or write it again"
        )
    path.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, path)


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        found += [Path(parent, name) for name in (*files, *links)]
    return sorted(found)


def _facts_of(data: bytes) -> FileFacts:
    return FileFacts(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))


def _facts_of_file(path: Path) -> FileFacts:
    with open(path, "rb") as file:
        return _facts_of_open(file)


def _facts_of_open(file: BufferedReader) -> FileFacts:
    digest = hashlib.file_digest(file, "sha256")
    return FileFacts(sha256=digest.hexdigest(), bytes=file.tell())
