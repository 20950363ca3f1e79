"""Where do a million requests go while they are measured? To disk, row by row, through one small buffer.

The file holds consecutive rows of little-endian int64 in the order of `SAMPLE_COLUMNS`, nothing
else: it can be read while it grows, and a writer killed in the middle of a row costs that row only.
`request_id` is the number on the wire: above the request's own it counts the attempts (`attempts.py`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from perfkit.clock import NS_PER_S

if TYPE_CHECKING:
    import numpy as np

SAMPLE_COLUMNS = (
    "request_id",
    "payload",
    "scheduled_ns",
    "sent_ns",
    "received_ns",
    "status",
    "outcome",
    "bytes_sent",
    "bytes_received",
)
ROW = struct.Struct(f"<{len(SAMPLE_COLUMNS)}q")
ROWS_HELD = 8192
FLUSH_EVERY_NS = NS_PER_S // 4


class SampleWriter:
    """Appends rows to a new file. One thread; the owner calls `flush_if_due` often, and `close`.

    `add` takes one row as `ROW.pack` made it, a value for each of SAMPLE_COLUMNS. It never waits for
    the disk, so it may be called where a delay would spoil a measurement.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._held: list[bytes] = []
        self._flushed_ns = 0
        self.add: Callable[[bytes], None] = self._held.append

    def flush_if_due(self, now_ns: int) -> None:
        """Write what is held when it is much or a quarter of a second old. Raises OSError when the disk is full."""
        if len(self._held) >= ROWS_HELD or now_ns - self._flushed_ns >= FLUSH_EVERY_NS:
            self._flushed_ns = now_ns
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        rows = memoryview(b"".join(self._held))
        self._held.clear()
        while rows:
            rows = rows[os.write(self._file, rows) :]

    def close(self) -> None:
        """Write what is held and close the file."""
        try:
            self.flush()
        finally:
            os.close(self._file)


def read_samples(path: Path, first_row: int = 0) -> dict[str, np.ndarray]:
    """The columns of a sample file from a row on; an unfinished last row is left for the next reading."""
    import numpy as np

    with path.open("rb") as file:
        file.seek(first_row * ROW.size)
        raw = file.read()
    whole_bytes = len(raw) - len(raw) % ROW.size
    rows = np.frombuffer(raw[:whole_bytes], dtype="<i8").reshape(-1, len(SAMPLE_COLUMNS))
    return {name: rows[:, index].copy() for index, name in enumerate(SAMPLE_COLUMNS)}
