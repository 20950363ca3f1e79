"""Which runs must stay, whatever is pruned? Baselines, and whatever somebody pinned.

A pin is a small file in the folder of the result, so that it goes where the result goes and no list
of pins can be lost.
"""

from __future__ import annotations

from pathlib import Path

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.documents import read_bytes
from perfkit.measuring.archive.format import PIN_NAME

_MOST_BYTES = 4096
_NO_REASON = "pinned"


def pin(folder: Path, reason: str = "") -> None:
    """Mark a run, scan or comparison as one that pruning leaves alone, and why; raises ArchiveError."""
    text = " ".join(reason.split()).encode()[: _MOST_BYTES - 1]
    durable.replace_file(folder / PIN_NAME, text + b"\n")


def unpin(folder: Path) -> None:
    """Take the mark away; without one nothing happens. Raises ArchiveError."""
    durable.remove(folder / PIN_NAME)


def pin_of(folder: Path) -> str:
    """Why a result must stay; empty when it need not. A mark that cannot be read still counts."""
    if not (folder / PIN_NAME).is_file():
        return ""
    try:
        text = read_bytes(folder / PIN_NAME, _MOST_BYTES).decode("utf-8", "replace").strip()
    except ArchiveError:
        return _NO_REASON
    return text or _NO_REASON
