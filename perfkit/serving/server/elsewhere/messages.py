"""What do the server and a child of its own say to each other?

A call is one byte that names the work, then its input. A reply is a fixed head (how it went, when it
was reached, when each part of it ended, CPU time), then the output or the reason why there is none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.stages import describe

PREPROCESS, POSTPROCESS = b"p", b"q"
TO_JSON = b"j"  # postprocess, and write its answer as JSON
PREDICT = b"b"  # a batch: its nearest deadline, then its items
DONE, REFUSED, FAILED = b"d", b"r", b"f"
LATE = b"l"  # the nearest deadline passed before the batch was in the model, so nothing was computed

_DEADLINE = struct.Struct("<q")
_HEAD = struct.Struct("<c5q")
_BATCH_HEAD = struct.Struct("<c14q")
BATCH_HEAD_BYTES = _BATCH_HEAD.size


class Reply(NamedTuple):
    """A child's answer. The instants are the host's, stamped by the child; 0 = stamps are off, or did not happen.

    The body is the packed output, or the answer's JSON, or (when it was refused or failed) the error's text;
    behind a failure's text stands the error's type, after a zero byte.
    """

    verdict: bytes
    reached_ns: int
    ended_ns: int
    serialised_ns: int
    cpu_ns: int
    thread_id: int
    body: bytes

    def to_bytes(self) -> bytes:
        """The reply as it travels."""
        return _HEAD.pack(*self[:6]) + self.body


class BatchReply(NamedTuple):
    """A child's answer to a batch: as `Reply`, with the instants of the batch in the ledger's order."""

    verdict: bytes
    thread_id: int
    units: int
    padded_units: int
    cpu_ns: int
    clamped_ns: int
    reached_ns: int
    collated_ns: int
    h2d_started_ns: int
    h2d_ended_ns: int
    compute_started_ns: int
    compute_ended_ns: int
    d2h_started_ns: int
    d2h_ended_ns: int
    woken_ns: int
    body: bytes

    def to_bytes(self) -> bytes:
        """The reply as it travels."""
        return _BATCH_HEAD.pack(*self[:15]) + self.body


def batch_call(deadline_ns: int, items: bytes) -> bytes:
    """The call for a batch of packed items of which the first expires then; 0 = none does."""
    return PREDICT + _DEADLINE.pack(deadline_ns) + items


def read_batch_call(data: bytes) -> tuple[int, bytes]:
    """The nearest deadline and the packed items of a call as it came."""
    at = len(PREDICT)
    (deadline_ns,) = _DEADLINE.unpack_from(data, at)
    return deadline_ns, data[at + _DEADLINE.size :]


def read_batch_reply(data: bytes) -> BatchReply:
    """A reply to a batch as it came."""
    return BatchReply(*_BATCH_HEAD.unpack_from(data), data[_BATCH_HEAD.size :])  # type: ignore[call-arg]


def failure_of(error: BaseException) -> tuple[bytes, bytes]:
    """What an error looks like on its way: the verdict and the body."""
    verdict = REFUSED if isinstance(error, InputRefused) else FAILED
    return verdict, f"{describe(error)}\0{type(error).__name__}".encode("utf-8", "replace")


def read_failure(body: bytes) -> tuple[str, str]:
    """The text of an error that has travelled, and its type's name."""
    text, _, kind = body.decode("utf-8").partition("\0")
    return text, kind


def read_reply(data: bytes) -> Reply:
    """A reply as it came."""
    verdict, reached_ns, ended_ns, serialised_ns, cpu_ns, thread_id = _HEAD.unpack_from(data)
    return Reply(verdict, reached_ns, ended_ns, serialised_ns, cpu_ns, thread_id, data[_HEAD.size :])
