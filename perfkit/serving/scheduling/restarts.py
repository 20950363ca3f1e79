"""When may something that died be started again, and when does it die too often to be waited for?

A pure state machine that is handed the time. The first death is answered at once; each further one
within a minute doubles the pause, so that a process that cannot live does not take a core.
"""

from __future__ import annotations

from collections import deque

from perfkit.clock import NS_PER_S

WINDOW_NS = 60 * NS_PER_S
LOOP_DEATHS = 5
"""As many deaths within the window are a loop: who waits is told so (RELIABILITY, R10)."""
FIRST_PAUSE_NS = NS_PER_S // 10
LONGEST_PAUSE_NS = 10 * NS_PER_S


class Restarts:
    """The deaths of one minute, and what follows from them. Not thread-safe."""

    def __init__(self) -> None:
        self._deaths_ns: deque[int] = deque()

    def died(self, now_ns: int) -> int:
        """Count a death; how long to pause before the next start."""
        self._forget(now_ns)
        self._deaths_ns.append(now_ns)
        before = len(self._deaths_ns) - 1
        return min(FIRST_PAUSE_NS << (before - 1), LONGEST_PAUSE_NS) if before else 0

    def is_looping(self, now_ns: int) -> bool:
        """Whether it has died so often that nobody should wait for it."""
        self._forget(now_ns)
        return len(self._deaths_ns) >= LOOP_DEATHS

    def looping_until_ns(self, now_ns: int) -> int:
        """When the loop is over if nothing dies meanwhile; 0 = there is none."""
        return self._deaths_ns[-LOOP_DEATHS] + WINDOW_NS if self.is_looping(now_ns) else 0

    def _forget(self, now_ns: int) -> None:
        while self._deaths_ns and self._deaths_ns[0] <= now_ns - WINDOW_NS:
            self._deaths_ns.popleft()
