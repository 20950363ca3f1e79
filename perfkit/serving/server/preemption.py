"""Whom may a thread push aside when it wakes? One that works for the event loop: nobody.

A worker is woken by a thread that holds the GIL. By default the kernel often lets the woken thread run at
once; it finds the GIL taken and sleeps again, which is two switches for nothing and a tenth of what a small
request costs. Under Linux's batch policy it starts when the core is free, or when its turn comes.
"""

from __future__ import annotations

import contextlib
import os


def renounce_preemption() -> None:
    """The calling thread, and what it starts from now on, goes behind whoever runs when it wakes.

    Its share of the processor stays the same. Changes nothing where the system has no such policy or forbids it.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
