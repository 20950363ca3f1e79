"""Which of several replicas gets the next request? The one with the least in hand."""

from __future__ import annotations

from collections.abc import Sequence


def least_loaded(loads: Sequence[int], turn: int) -> int:
    """The index of the smallest load; among equals the first from `turn` on, so that idle replicas take turns."""
    count = len(loads)
    return min(range(count), key=lambda index: (loads[index], (index - turn) % count))
