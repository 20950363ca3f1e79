"""What may be on the disk after the power went, between any two operations of a save?

Every call that changes names, and every sync, is recorded while a real scan is saved. A disk promises no more than
this: a file holds what it held when it was last synced, a folder the names that it held then. What came later may
have survived or not, folder by folder, since every rename stays inside one folder.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALLS = ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync")
Names = dict[str, int]  # name in a folder -> what it names


@dataclass
class Disk:
    """Files by number: what each holds now, and what it is sure to hold after a power cut."""

    names: dict[int, Names] = field(default_factory=dict)
    synced_names: dict[int, Names] = field(default_factory=dict)
    synced_data: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The power goes here: what the program had been told to be safe, and what the disk knows."""

    saved: tuple[str, ...]
    root: int
    names: dict[int, Names]
    synced_names: dict[int, Names]
    synced_data: dict[int, bytes]

    def restore(self, folder: Path, survives: Callable[[int], bool]) -> None:
        """Make what is left, `survives` telling for each folder whether its unsynced names did."""
        self._restore(self.root, folder, survives)

    def _restore(self, number: int, path: Path, survives: Callable[[int], bool]) -> None:
        path.mkdir()
        names = self.names[number] if number in self.names and survives(number) else self.synced_names.get(number, {})
        for name, child in names.items():
            if child in self.names or child in self.synced_names:
                self._restore(child, path / name, survives)
            else:
                (path / name).write_bytes(self.synced_data.get(child, b""))


class Recorder:
    """Patches `os` while a program writes below a folder; collects where the power may go."""

    def __init__(self, folder: Path, saved: list[str], monkeypatch: Any) -> None:
        self.cuts: list[Cut] = []
        self._folder, self._saved = folder, saved
        self._disk = Disk()
        for name in CALLS:
            monkeypatch.setattr(os, name, self._recorded(getattr(os, name), is_sync=name == "fsync"))

    def _recorded(self, call: Callable[..., Any], is_sync: bool) -> Callable[..., Any]:
        def recorded(*given: Any, **named: Any) -> Any:
            self._cut()
            result = call(*given, **named)
            if is_sync:
                self._synced(given[0])
            return result

        return recorded

    def cut_at_the_end(self) -> None:
        """The power may also go when all is done."""
        self._cut()

    def _cut(self) -> None:
        if not self._folder.is_dir():
            return
        self._disk.names = dict(_folders(self._folder))
        disk, root = self._disk, os.stat(self._folder).st_ino
        copies = (dict(disk.names), dict(disk.synced_names), dict(disk.synced_data))
        self.cuts.append(Cut(tuple(self._saved), root, *copies))

    def _synced(self, descriptor: int) -> None:
        facts, path = os.fstat(descriptor), Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self._disk.synced_names[facts.st_ino] = _names(path)
        else:
            self._disk.synced_data[facts.st_ino] = path.read_bytes()


def ways(cut: Cut, seed: int, chances: int) -> Iterator[Callable[[int], bool]]:
    """No unsynced name survives; all do; some do, by chance."""
    yield lambda _number: False
    yield lambda _number: True
    for chance in range(chances):
        drawn = random.Random(f"{seed} {chance}")
        kept = {number: drawn.random() < 0.5 for number in sorted(cut.names)}
        yield lambda number, kept=kept: kept.get(number, False)


def _folders(top: Path) -> Iterator[tuple[int, Names]]:
    for parent, _, _ in os.walk(top):
        yield os.stat(parent).st_ino, _names(Path(parent))


def _names(path: Path) -> Names:
    return {entry.name: entry.inode() for entry in os.scandir(path)}
