"""How much CPU time did a thread spend from one boundary to the next?

Reading a thread's CPU clock is a system call, the dearest part of the ledger. Where one stage follows
another on the same thread, the reading that ends the first also begins the second.
"""

from __future__ import annotations

from collections.abc import Callable


class CpuLap:
    """A thread's CPU time since its last boundary. Belongs to the thread that made it."""

    __slots__ = ("_began_ns", "_read_ns")

    def __init__(self, read_ns: Callable[[], int]) -> None:
        self._read_ns = read_ns
        self._began_ns = read_ns()

    def restart(self) -> None:
        """What was done since the last boundary belongs to no stage."""
        self._began_ns = self._read_ns()

    def lap_ns(self) -> int:
        """CPU time since the last boundary; this is the next one."""
        now_ns = self._read_ns()
        used_ns, self._began_ns = now_ns - self._began_ns, now_ns
        return used_ns
