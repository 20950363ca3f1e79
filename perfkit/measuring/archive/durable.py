"""How does a folder or file reach the disk whole or not at all, whatever kills the process?

Everything is written under a temporary dot name beside its destination, each file and folder is
synced, then one rename makes it visible, then the parent is synced. A killed process leaves the
temporary name behind, which no reader looks at and `remove_torn` takes away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from perfkit.errors import ArchiveError
from perfkit.units import format_bytes

TORN_SUFFIX = ".partial"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def new_folder(folder: Path, needed_bytes: Callable[[], int]) -> Iterator[Path]:
    """A temporary folder to fill, which becomes `folder` when the block ends without an exception.

    Raises ArchiveError when `folder` exists or the disk refuses; nothing else on the disk changes.
    `needed_bytes` is asked only for the message of a full disk.
    """
    _refuse_existing(folder)
    temporary = temporary_beside(folder)
    try:
        make_folder(folder.parent)
        temporary.mkdir()
        yield temporary
        _sync_tree(temporary)
        temporary.rename(folder)
        sync(folder.parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            _refuse_existing(folder)
        raise explain(error, folder, needed_bytes) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in place of an older one, or nothing at all; raises ArchiveError."""
    temporary = temporary_beside(path)
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        raise explain(error, path, lambda: len(data)) from error
    finally:
        with contextlib.suppress(OSError):  # a disk that refuses this too leaves a torn name, which no reader looks at
            temporary.unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """A fresh dot name in the same folder, so that the rename stays on one file system."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)}{TORN_SUFFIX}"


def is_torn(path: Path) -> bool:
    """Whether a name is one that a write in progress, or a killed one, uses."""
    return path.name.startswith(".") and path.name.endswith(TORN_SUFFIX)


def remove_torn(parent: Path) -> list[str]:
    """Remove what killed writers left in a folder; the caller makes sure that none is at work there."""
    if not parent.is_dir():
        return []
    torn = sorted(path for path in parent.iterdir() if is_torn(path))
    for path in torn:
        remove(path)
    return [path.name for path in torn]


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder; absent is fine. Raises ArchiveError."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise explain(error, path, lambda: 0) from error


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents so that they survive a power cut; raises OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def explain(error: OSError, path: Path, needed_bytes: Callable[[], int]) -> ArchiveError:
    """What the disk said, as one line with the remedy."""
    untouched = "what was saved before is untouched"
    if error.errno in _FULL:
        needed, free = format_bytes(needed_bytes()), format_bytes(_free_bytes(path.parent))
        return ArchiveError(
            f"the disk is full: {path} needs {needed}, {free} are free; make room, "
            f"or choose another disk with --out ({untouched})"
        )
    if error.errno in _FORBIDDEN:
        return ArchiveError(
            f"cannot write {path}: {error.strerror}; choose a folder that you may write to with --out ({untouched})"
        )
    reason = error.strerror or str(error)
    return ArchiveError(
        f"cannot write {path}: {reason}; put that right or choose another folder with --out ({untouched})"
    )


def _free_bytes(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _refuse_existing(folder: Path) -> None:
    if os.path.lexists(folder):
        raise ArchiveError(f"{folder} exists; saved runs are never overwritten: choose another name or remove it")


def _sync_tree(folder: Path) -> None:
    for path, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync(Path(path, name))
        sync(Path(path))
