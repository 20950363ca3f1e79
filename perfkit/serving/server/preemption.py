"""Whom may a thread push aside when it wakes? On a core that all threads share: nobody.

A worker is woken by a thread that holds the GIL. On one core the kernel often lets the woken thread run at
once; it finds the GIL taken and sleeps again, which is two switches for nothing and a tenth of what a small
request costs. Under Linux's batch policy it starts when the core is free, or when its turn comes. Where there
are more cores the kernel finds it an idle one, and would be kept from that.
"""

from __future__ import annotations

import contextlib
import os


def renounce_preemption() -> None:
    """Where the calling thread has but one core: it goes behind whoever runs when it wakes, and what it starts too.

    Its share of the processor stays the same. Changes nothing where the system has no such policy or forbids it.
    """
    with contextlib.suppress(OSError, AttributeError):
        if len(os.sched_getaffinity(0)) == 1:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
