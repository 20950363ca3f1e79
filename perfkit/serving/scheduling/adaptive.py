"""How large may a batch be, and how long may it wait for company, inside a P99 budget at the present arrival rate?

A pure state machine that is told of arrivals and of finished batches. A batch of s takes about
alpha + beta x s, with a spread sigma, and s - 1 further arrivals take (s - 1) x gap. So the largest
batch whose first request still makes the budget b is

    s = floor((b - alpha - 2.33 sigma + gap) / (beta + gap))

(2.33 is the 99th percentile of the normal distribution), and what is left of b beside the call is the
window. Few arrivals give s = 1, for which nobody waits. A silence closes the window early: users who
wait for their answers send nothing meanwhile, however fast they send otherwise. What a request waits
because every worker is busy is no part of this: smaller batches would only make it longer.
"""

from __future__ import annotations

import math

_GAP_WEIGHT = 0.05  # of the newest gap: about the last 20 arrivals
_CALL_WEIGHT = 0.02  # of the newest batch: about the last 50 calls
_P99 = 2.33  # standard deviations
_SILENCE = 8  # median gaps; of Poisson arrivals one gap in 256 is longer
_MEDIAN_STEP = 1.05  # the median is followed by this factor an arrival
_LEAST_SPREAD = 0.01  # variance of the sizes below which they tell nothing about the slope


class CallTime:
    """Time of a call by its size: a line through what was seen, old batches fading out (weighted least squares)."""

    __slots__ = ("_mean_ns", "_mean_size", "_size_time", "_size_variance", "_variance", "largest")

    def __init__(self) -> None:
        self.largest = 0  # size seen so far; 0 = none
        self._mean_size = 0.0
        self._mean_ns = 0.0
        self._size_variance = 0.0
        self._size_time = 0.0  # covariance
        self._variance = 0.0  # of the times around the line

    def add(self, size: int, took_ns: int) -> None:
        """One call has ended."""
        if not self.largest:
            self._mean_size, self._mean_ns = float(size), float(took_ns)
        elif size <= 2 * self.largest:
            off_ns = took_ns - self.mean_ns(size)
            self._variance += _CALL_WEIGHT * (off_ns * off_ns - self._variance)
        self.largest = max(self.largest, size)
        size_off, time_off = size - self._mean_size, took_ns - self._mean_ns
        self._mean_size += _CALL_WEIGHT * size_off
        self._mean_ns += _CALL_WEIGHT * time_off
        rest = 1 - _CALL_WEIGHT
        self._size_variance = rest * (self._size_variance + _CALL_WEIGHT * size_off * size_off)
        self._size_time = rest * (self._size_time + _CALL_WEIGHT * size_off * time_off)

    def line(self) -> tuple[float, float]:
        """Start and slope in nanoseconds. Where the sizes tell no slope, a call is taken to cost its size."""
        if self._size_variance > _LEAST_SPREAD:
            slope = self._size_time / self._size_variance
            start = self._mean_ns - slope * self._mean_size
            if slope >= 0 and start >= 0:
                return start, slope
        return 0.0, self._mean_ns / self._mean_size

    def mean_ns(self, size: int) -> float:
        """What a call of that size takes."""
        start, slope = self.line()
        return start + slope * size

    def p99_ns(self, size: int) -> float:
        """What a call of that size takes at most, but for one in a hundred."""
        return self.mean_ns(size) + _P99 * math.sqrt(self._variance)


class AdaptiveBatch:
    """Batch size and window as of now. Not thread-safe."""

    def __init__(self, most: int, budget_ns: int) -> None:
        self.max_size = 1
        self.max_delay_ns = 0
        self.max_silence_ns = 0  # since the last arrival; 0 = any
        self._most = most
        self._budget_ns = budget_ns
        self._gap_ns = 0.0
        self._median_gap_ns = 0.0
        self._last_ns = 0
        self._calls = CallTime()

    def arrived(self, now_ns: int) -> None:
        """A request is ready for a worker."""
        if self._last_ns:
            self._follow(now_ns - self._last_ns)
        self._last_ns = now_ns
        self._set()

    def served(self, size: int, took_ns: int) -> None:
        """A worker is done with a batch that it held for so long."""
        self._calls.add(size, took_ns)
        self._set()

    def _follow(self, gap_ns: int) -> None:
        if not self._gap_ns:
            self._gap_ns = self._median_gap_ns = float(gap_ns)
            return
        self._gap_ns += _GAP_WEIGHT * (gap_ns - self._gap_ns)
        is_longer = gap_ns > self._median_gap_ns
        self._median_gap_ns = max(1.0, self._median_gap_ns * (_MEDIAN_STEP if is_longer else 1 / _MEDIAN_STEP))

    def _set(self) -> None:
        if not self._calls.largest or not self._gap_ns:
            return
        _, slope = self._calls.line()
        left_ns = self._budget_ns - self._calls.p99_ns(0) + self._gap_ns
        largest = min(self._most, 2 * self._calls.largest)  # beyond what was seen the line is a guess
        self.max_size = max(1, min(largest, math.floor(left_ns / (slope + self._gap_ns))))
        window_ns = max(0, round(self._budget_ns - self._calls.p99_ns(self.max_size)))
        self.max_delay_ns = window_ns if self.max_size > 1 else 0
        self.max_silence_ns = round(_SILENCE * self._median_gap_ns)
