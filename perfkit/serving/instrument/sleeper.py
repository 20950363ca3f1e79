"""How long does a thread that wants to run wait for the GIL?

A thread sleeps one millisecond, over and over, and notes by how much it overslept. To come back it
needs a core and then the GIL; the kernel tells how long it waited for a core (its own run-queue
time), and the rest is the wait for the GIL plus the timer's slack of about 0.06 ms. Judge by the
90th percentile of at least 100 samples: own trials found the median unstable when a call into C keeps
the GIL. Standard library only:

    with GilSleeper() as sleeper:
        serve()
    print(sleeper.summary())
"""

from __future__ import annotations

import os
import sys
import threading
from array import array
from contextlib import suppress
from dataclasses import dataclass

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock

INTERVAL_NS = 1_000_000
CAPACITY = 1 << 16  # a minute of sleeps, 1 MB
LEAST_SAMPLES = 100  # below it a 90th percentile rests on fewer than ten sleeps


@dataclass(frozen=True, slots=True, kw_only=True)
class SleeperSummary:
    """Quantiles of the oversleep, null below 100 samples, beside the interpreter's switch interval.

    `has_runqueue` says whether the kernel's run-queue time could be taken off; if not, waiting for a
    core counts as well.
    """

    sample_count: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    switch_interval_s: float
    has_runqueue: bool


class GilSleeper:
    """A daemon thread that measures the wait for the GIL. One thread starts and stops it, any may read it."""

    def __init__(self, capacity: int = CAPACITY, clock: Clock = REAL_CLOCK) -> None:
        self._clock = clock
        self._capacity = capacity
        self._times_ns = array("q", bytes(8 * capacity))  # rings, written by the sleeping thread only
        self._oversleeps_ns = array("q", bytes(8 * capacity))
        self._written = 0
        self._is_stopping = False
        self._schedstat: int | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="perfkit-gil-sleeper", daemon=True)

    def start(self) -> None:
        """Begin to measure; a sleeper starts once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, at its next waking; raises what it died of."""
        self._is_stopping = True
        self._thread.join()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> GilSleeper:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def summary(self, since_ns: int = 0) -> SleeperSummary:
        """Quantiles of the sleeps that ended at or after an instant, as far as the ring reaches back.

        For use in anybody's service; a run of perfkit keeps the single samples.
        """
        oversleeps = sorted(oversleep for time_ns, oversleep in self.samples() if time_ns >= since_ns)
        is_enough = len(oversleeps) >= LEAST_SAMPLES
        p50_s, p90_s, p99_s = (_quantile_s(oversleeps, p) if is_enough else None for p in (0.5, 0.9, 0.99))
        return SleeperSummary(
            sample_count=len(oversleeps),
            p50_s=p50_s,
            p90_s=p90_s,
            p99_s=p99_s,
            switch_interval_s=sys.getswitchinterval(),
            has_runqueue=self._schedstat is not None,
        )

    def samples(self) -> list[tuple[int, int]]:
        """(instant of waking, oversleep), nanoseconds, oldest first; the ring keeps the newest."""
        end = self._written
        places = (index % self._capacity for index in range(max(0, end - self._capacity), end))
        return [(self._times_ns[place], self._oversleeps_ns[place]) for place in places]

    def _run(self) -> None:
        with suppress(OSError):  # no /proc, or a kernel without the counter
            self._schedstat = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        try:
            self._measure()
        except BaseException as error:  # the owner re-raises it in stop()
            self._error = error
        finally:
            if self._schedstat is not None:
                os.close(self._schedstat)

    def _measure(self) -> None:
        now_ns, sleep_until = self._clock.now_ns, self._clock.sleep_until
        waited_ns = self._runqueue_ns()
        while not self._is_stopping:
            due_ns = now_ns() + INTERVAL_NS
            sleep_until(due_ns)
            woken_ns = now_ns()
            # One reading a turn: a reading gives the GIL away, and to get it back is a wait of its own.
            waited_before_ns, waited_ns = waited_ns, self._runqueue_ns()
            self._note(woken_ns, woken_ns - due_ns - (waited_ns - waited_before_ns))

    def _note(self, woken_ns: int, oversleep_ns: int) -> None:
        place = self._written % self._capacity
        self._times_ns[place] = woken_ns
        self._oversleeps_ns[place] = max(0, oversleep_ns)
        self._written += 1

    def _runqueue_ns(self) -> int:
        if self._schedstat is None:
            return 0
        return int(os.pread(self._schedstat, 64, 0).split()[1])


def _quantile_s(ordered: list[int], p: float) -> float:
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))] / NS_PER_S
