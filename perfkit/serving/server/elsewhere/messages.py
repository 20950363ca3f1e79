"""What do the server and a child of its own say to each other?

A call is one byte that names the work, then its input. A reply is a fixed head (how it went, when it
was reached, when each part of it ended, CPU time), then the output or the reason why there is none.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PREPROCESS, POSTPROCESS, TO_JSON = b"p", b"q", b"j"  # the last: postprocess, then write JSON
DONE, REFUSED, FAILED = b"d", b"r", b"f"

_HEAD = struct.Struct("<c5q")


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


def read_reply(data: bytes) -> Reply:
    """A reply as it came."""
    verdict, reached_ns, ended_ns, serialised_ns, cpu_ns, thread_id = _HEAD.unpack_from(data)
    return Reply(verdict, reached_ns, ended_ns, serialised_ns, cpu_ns, thread_id, data[_HEAD.size :])
