"""Which stages does a Server-Timing header report, and how long was each? (W3C Server Timing)"""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.clock import NS_PER_S
from perfkit.records import BATCH_INSTANTS, STAGE_ENDS
from perfkit.serving.instrument import columns as c

_NS_PER_MS = NS_PER_S // 1_000
_LAST = "postprocess"  # later stages have not happened when the header is written


def _sources() -> list[tuple[str, bool, int]]:
    found = []
    for stage, instant in STAGE_ENDS.items():
        column = f"{instant}_ns"
        if instant in BATCH_INSTANTS:
            found.append((stage, True, 1 + c.BATCH_COLUMNS.index(column)))
        elif column in c.REQUEST_COLUMNS:
            found.append((stage, False, 1 + c.REQUEST_COLUMNS.index(column)))
        if stage == _LAST:
            break
    return found


_SOURCES = _sources()


def server_timing(request: Sequence[int], batch: Sequence[int]) -> bytes:
    """The header line from a request's row and its batch's row; absent instants let their neighbours adjoin."""
    parts = []
    before_ns = 0
    for stage, is_batch, column in _SOURCES:
        row = batch if is_batch else request
        instant_ns = row[column] if row else 0
        if not instant_ns:
            continue
        if before_ns:
            parts.append(f"{stage};dur={(instant_ns - before_ns) / _NS_PER_MS:.3f}")
        before_ns = instant_ns
    if not parts:  # stamps are off
        return b""
    return f"server-timing: {', '.join(parts)}\r\n".encode()
