"""Who writes a folder? One process at a time, for as long as it holds the folder's lock file."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import durable

SCAN_LOCK = "scan.lock"
COMPARISON_LOCK = "comparison.lock"


class Writer:
    """Who holds the lock of a folder, from its making until `close`. One thread uses it."""

    def __init__(self, lock: int) -> None:
        self._lock: int | None = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process write; safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextlib.contextmanager
def locked(folder: Path, name: str, what: str) -> Iterator[int]:
    """Take the lock `name` of a folder, which is made if need be; `what` is written there, for the message.

    It is given up when the block raises, else when the descriptor is closed. Raises ArchiveError.
    """
    try:
        durable.make_folder(folder)
        lock = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise durable.explain(error, folder / name, lambda: 0) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    except BlockingIOError as error:
        os.close(lock)
        raise ArchiveError(
            f"another process writes the {what} in {folder}; wait for it, or choose another --out"
        ) from error
    except OSError as error:
        os.close(lock)
        raise durable.explain(error, folder / name, lambda: 0) from error
    except BaseException:
        os.close(lock)
        raise
