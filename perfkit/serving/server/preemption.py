"""Who runs first on a core: a thread that computes, or the event loop that answers for all of them?

On a core that all share, a thread that wakes pushes nobody aside. A worker is woken by a thread that holds the
GIL. There the kernel often lets the woken thread run at once; it finds the GIL taken and sleeps again, which is
two switches for nothing and a tenth of what a small request costs. Under Linux's batch policy it starts when
the core is free, or when its turn comes. Where there are more cores the kernel finds it an idle one, and would
be kept from that.
"""

from __future__ import annotations

import contextlib
import os

_MOST_NICE = 19


def renounce_preemption() -> None:
    """Where the calling thread has but one core: it goes behind whoever runs when it wakes, and what it starts too.

    Its share of the processor stays the same. Changes nothing where the system has no such policy or forbids it.
    """
    with contextlib.suppress(OSError, AttributeError):
        if len(os.sched_getaffinity(0)) == 1:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def stand_behind(nice: int) -> None:
    """The calling thread, and what it starts, gets a share of the core by so much niceness behind the process's own.

    A long call fills its core for milliseconds. Whoever wakes there with as much right to it, the event loop with the
    next batch in its hands, waits for the end of a slice, though another core be idle.
    """
    if nice:
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())  # the main thread's
        os.setpriority(os.PRIO_PROCESS, 0, min(own + nice, _MOST_NICE))
