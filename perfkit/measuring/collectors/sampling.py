"""How does a sampler's own process keep to its grid, tell that it is up, and end when it is told to?

The signal that ends it is blocked and waited for, so that it ends a pause and can never cut a write
in two. Ctrl-C is for the process that started it, which then stops the sampler.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from perfkit.clock import NS_PER_S

READY = b"ready\n"


def enter(niceness: int) -> None:
    """Prepare the process. A lower niceness needs a privilege; the starter reports the one we have."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


def wait_for_sigterm(nanoseconds: int) -> bool:
    """Pause for that long; True when the signal came."""
    return signal.sigtimedwait([signal.SIGTERM], nanoseconds / NS_PER_S) is not None


def announce_once() -> Callable[[], None]:
    """Tells the starter, by the end of our standard output, that the first instant is on disk."""
    is_open = True

    def announce() -> None:
        nonlocal is_open
        if is_open:
            is_open = False
            os.write(sys.stdout.fileno(), READY)
            os.close(sys.stdout.fileno())

    return announce
