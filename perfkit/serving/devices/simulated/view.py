"""What would the driver of a real card report about the simulated one?

The card's utilisation is the share of the last sixth of a second in which at least one kernel ran:
100 % does not mean that the card is full. Multiprocessor activity weighs each kernel by the share
of the card it keeps busy.
"""

from __future__ import annotations

from collections.abc import Iterable

from perfkit.clock import NS_PER_S

WINDOW_NS = NS_PER_S // 6


def covered_ratio(intervals: Iterable[tuple[int, int]], from_ns: int, until_ns: int) -> float:
    """Share of a window that intervals without overlap cover."""
    covered_ns = sum(max(0, min(ended, until_ns) - max(started, from_ns)) for started, ended in intervals)
    return covered_ns / (until_ns - from_ns)


def utilisation_ratio(intervals: Iterable[tuple[int, int]], now_ns: int) -> float:
    """Share of the window before an instant with at least one kernel."""
    return covered_ratio(intervals, now_ns - WINDOW_NS, now_ns)
