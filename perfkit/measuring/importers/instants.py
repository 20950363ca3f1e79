"""Which nanosecond does a time stamp with date, fraction and zone name?"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from perfkit.clock import NS_PER_S

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?")


def epoch_ns(text: str) -> int:
    """Nanoseconds since the epoch; without a zone UTC is assumed. Raises ValueError on anything else."""
    match = _STAMP.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no time stamp such as 2026-01-31T12:00:00.5Z")
    zone = match[3] or "Z"
    whole = datetime.fromisoformat(match[1] + ("+00:00" if zone == "Z" else zone)).astimezone(UTC)
    return int(whole.timestamp()) * NS_PER_S + int((match[2] or "0").ljust(9, "0"))
