"""Which stages does a Server-Timing header report, and how long was each? (W3C Server Timing)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfkit.clock import NS_PER_S
from perfkit.records import BATCH_INSTANTS, STAGE_ENDS, STAGES
from perfkit.serving.instrument import columns as c

_NS_PER_MS = NS_PER_S // 1_000
_IN_HEADER = frozenset(STAGES[: STAGES.index("postprocess") + 1])  # the later ones end after it is written


def _sources() -> list[tuple[str, bool, int]]:
    found = []
    for stage, instant in STAGE_ENDS.items():
        column = f"{instant}_ns"
        if instant in BATCH_INSTANTS:
            found.append((stage, True, 1 + c.BATCH_COLUMNS.index(column)))
        elif column in c.REQUEST_COLUMNS:
            found.append((stage, False, 1 + c.REQUEST_COLUMNS.index(column)))
    return found


SOURCES = _sources()
"""The server's stages in order: name, whether the instant that ends it is the batch's, and that instant's column."""


def stage_durations_ns(request: Sequence[int], batch: Sequence[int]) -> Iterator[tuple[str, int]]:
    """The server's stages, from a request's row and its batch's row; absent instants let their neighbours adjoin."""
    before_ns = 0
    for stage, is_batch, column in SOURCES:
        row = batch if is_batch else request
        instant_ns = row[column] if row else 0
        if instant_ns:
            if before_ns:
                yield stage, instant_ns - before_ns
            before_ns = instant_ns


def server_timing(request: Sequence[int], batch: Sequence[int]) -> bytes:
    """The header line, up to postprocess; empty when stamps are off."""
    durations = stage_durations_ns(request, batch)
    parts = [f"{stage};dur={duration_ns / _NS_PER_MS:.3f}" for stage, duration_ns in durations if stage in _IN_HEADER]
    if not parts:
        return b""
    return f"server-timing: {', '.join(parts)}\r\n".encode()
