"""Until when is an answer worth anything? What the client's header says, or the setting: the sooner."""

from __future__ import annotations

import re

from perfkit.clock import NS_PER_S
from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.connection import Request

DEADLINE = b"perfkit-deadline"
_SECONDS = re.compile(rb"[0-9]{1,9}(\.[0-9]{1,9})?")


def read_deadline_ns(request: Request, setting_s: float | None) -> int:
    """The instant at which the request has expired, 0 = never; raises MalformedRequest.

    `Perfkit-Deadline` holds the seconds that remained when the request was sent. A caller who has a deadline
    himself passes on what is left of it, so that it travels with the work.
    """
    text = request.headers.get(DEADLINE)
    if text is None:
        return request.accepted_ns + round(setting_s * NS_PER_S) if setting_s else 0
    if not _SECONDS.fullmatch(text):
        took = "it takes the seconds that remain, as a decimal such as 0.25"
        raise MalformedRequest(400, "bad_deadline", f"Perfkit-Deadline is {text[:40].decode('latin-1')!r}; {took}")
    remaining_s = float(text)
    return request.accepted_ns + round(min(remaining_s, setting_s or remaining_s) * NS_PER_S)
