"""How do several generators start at the same instant, however long each takes to get ready?

Each has a named pipe. A generator opens its pipe for reading when it is ready, which is when its owner can
open it for writing; once all are open, the owner writes the same instant into each.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from perfkit.clock import NS_PER_S, REAL_CLOCK

LEAD_NS = NS_PER_S // 10  # judgement: until the instant has been read everywhere


def make_gate(path: Path) -> Path:
    """A new named pipe; raises OSError."""
    os.mkfifo(path)
    return path


def await_instant(gate: Path) -> int:
    """The instant to start at, in nanoseconds of CLOCK_MONOTONIC; waits for the owner."""
    with gate.open("rb") as pipe:
        return int(pipe.read())


def open_gates(gates: Sequence[Path], is_alive: Callable[[int], bool]) -> None:
    """Wait until every generator is ready, then let all of them start.

    `is_alive` is asked about a generator, by its place, while it is waited for; it waits a moment itself. A generator
    that has ended is left out: whoever asks for its report learns why.
    """
    pipes = []
    try:
        for place, gate in enumerate(gates):
            while (pipe := _open_when_ready(gate)) is None and is_alive(place):
                pass
            if pipe is not None:
                pipes.append(pipe)
        instant = b"%d" % (REAL_CLOCK.now_ns() + LEAD_NS)
        for pipe in pipes:
            os.write(pipe, instant)
    finally:
        for pipe in pipes:
            os.close(pipe)


def _open_when_ready(gate: Path) -> int | None:
    """The pipe to write to; None while nobody reads from it."""
    try:
        return os.open(gate, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise
