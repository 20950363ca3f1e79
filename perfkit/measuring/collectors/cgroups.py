"""How much memory do a process's control groups allow it, and how often did they hold it back?

In either version of control groups; `quota` finds them.
"""

from __future__ import annotations

from pathlib import Path

from perfkit.measuring.collectors.proc import Throttling, parse_throttling, read_text

_UNLIMITED_BYTES = 1 << 60  # version 1 writes a huge page-rounded number for "no limit"


def read_memory_limit(groups: list[Path]) -> int | None:
    """The tightest memory limit in bytes, or None when no group sets one."""
    texts = [read_text(group / name) for group in groups for name in ("memory.max", "memory.limit_in_bytes")]
    limits = [int(text) for text in texts if text is not None and text.strip().isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def read_throttling(groups: list[Path]) -> Throttling | None:
    """How often the quota held the process's innermost counting group back."""
    found = (parse_throttling(read_text(group / "cpu.stat") or "") for group in groups)
    return next((throttling for throttling in found if throttling is not None), None)
