"""What does a reply's status say about how the request ended, and what is an error called?"""

from __future__ import annotations

from perfkit.records import EndState

_BY_STATUS = {
    429: EndState.REJECTED,
    503: EndState.REJECTED,
    504: EndState.EXPIRED,
}


def outcome_of_status(status: int) -> EndState:
    """The end state that an HTTP status stands for; a redirect is not followed and counts as a failure."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 200 <= status < 300:
        return EndState.OK
    return EndState.REFUSED if 400 <= status < 500 else EndState.FAILED


STATUS_OUTCOMES = tuple(int(outcome_of_status(status)) for status in range(1000))
"""Status -> end state as a plain integer, for the path that every reply takes."""


def error_kind(outcome: int, status: int) -> str:
    """The name under which the report counts a request that did not succeed."""
    if status:
        return f"http_{status}"
    # Without a status the service cannot have failed by its own word: the bytes were no HTTP reply.
    return "malformed_reply" if outcome == EndState.FAILED else EndState(outcome).label
