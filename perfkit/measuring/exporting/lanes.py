"""Which spans can share a line of a trace without overlapping?"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def assign_lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """A lane for each span (start, end), the lowest that is free at its start; as few lanes as overlap at once.

    Interval partitioning by earliest start (Kleinberg & Tardos, Algorithm Design, section 4.1).
    """
    lanes = [0] * len(spans)
    busy: list[tuple[float, int]] = []  # end, lane
    free: list[int] = []
    opened = 0
    for index in sorted(range(len(spans)), key=lambda index: spans[index]):
        start, end = spans[index]
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, opened = opened, opened + 1
        lanes[index] = lane
        heapq.heappush(busy, (end, lane))
    return lanes
