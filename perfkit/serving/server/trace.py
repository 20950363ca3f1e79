"""Which trace does a request belong to? The header traceparent (W3C Trace Context, level 1)."""

from __future__ import annotations

import re
import secrets
from typing import NamedTuple

_FORM = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_INVALID_VERSION = b"ff"


class Trace(NamedTuple):
    """A trace and the caller's span in it; `parent_id` is empty for a trace that began here."""

    trace_id: str
    parent_id: str


def read_trace(traceparent: bytes | None) -> Trace:
    """The caller's trace, or a new one where the header is absent or, as the standard wants, not understood."""
    found = _FORM.fullmatch(traceparent or b"")
    if found is None:
        return Trace(secrets.token_hex(16), "")
    version, trace_id, parent_id, more = found.groups()
    is_known = version != _INVALID_VERSION and not (version == b"00" and more)
    if not is_known or not trace_id.strip(b"0") or not parent_id.strip(b"0"):
        return Trace(secrets.token_hex(16), "")
    return Trace(trace_id.decode(), parent_id.decode())
