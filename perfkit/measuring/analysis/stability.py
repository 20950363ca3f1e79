"""Do three windows of a run agree on throughput, P50 and P99?

The rule of NVIDIA's perf_analyzer, max / min of three windows at most 1.10, on throughput and P50; the P99
intervals must overlap instead (own trials: of steady runs with 662 requests two thirds exceed 1.10 on P99).
A window of few requests strays over 10 % by chance, so a ratio counts against the run only when the
intervals of the extreme windows are apart as well. Where there are rounds enough, windows are whole rounds and
their intervals are no narrower than the spread of rounds inside the windows allows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Interval, mean_interval
from perfkit.measuring.analysis.latency import quantile
from perfkit.measuring.analysis.rounds import half_widths, split_rounds, tell_noise
from perfkit.measuring.analysis.throughput import finite_sizes, loop_time, round_rates, slice_rates

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.measured import Measured

WINDOWS = 3  # as in perf_analyzer
MOST_SPREAD = 1.10  # as in perf_analyzer
CONFIDENCE = 0.99  # of each window's interval: three quantities times three pairs are compared
_LEAST_REQUESTS = 20  # a window of fewer has no interval to speak of


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far the windows are apart in one quantity: max / min, the most allowed, and the complaint if it is more."""

    quantity: str
    ratio: float | None
    most: float
    problem: str


def compare_windows(measured: Measured, think_s: float, closed: bool) -> tuple[Spread, ...]:
    """The three quantities over three parts of the pooled windows; empty when there are too few requests."""
    answered = np.isfinite(measured.latency_s)
    latency_s, sizes = measured.latency_s[answered], finite_sizes(measured)
    if len(latency_s) < WINDOWS * _LEAST_REQUESTS:
        return ()
    if closed:
        cut = _cut(latency_s, sizes)
        rates = [_inverse(loop_time(values, counts, think_s, CONFIDENCE)) for values, counts in cut]
        of_rounds = [1 / (float(part.mean()) + think_s) for part in split_rounds(latency_s, sizes)]
    else:
        rates = _open_rates(measured)
        of_rounds = round_rates(measured)
    return (_judge("throughput", _widened(rates, of_rounds), MOST_SPREAD), *compare_levels(latency_s, sizes))


def compare_levels(latency_s: Floats, sizes: Sequence[int]) -> tuple[Spread, ...]:
    """P50 and P99 over three parts of answered requests in order, `sizes` of them a round; empty for too few."""
    if len(latency_s) < WINDOWS * _LEAST_REQUESTS:
        return ()
    cut, rounds = _cut(latency_s, sizes), split_rounds(latency_s, sizes)
    halves, tails = (
        _widened(
            [_level(values, counts, p) for values, counts in cut], [float(np.quantile(part, p)) for part in rounds]
        )
        for p in (0.5, 0.99)
    )
    return (_judge("P50", halves, MOST_SPREAD), _judge("P99", tails, 1.0))


def _widened(windows: Sequence[Interval], of_rounds: Sequence[float]) -> list[Interval]:
    """Each window's interval, no narrower than the spread of its rounds' levels allows."""
    if not tell_noise(of_rounds):
        return list(windows)
    halves = half_widths(np.array(of_rounds), WINDOWS)
    return [_no_narrower(window, float(half)) for window, half in zip(windows, halves, strict=True)]


def _no_narrower(window: Interval, half: float) -> Interval:
    if window.value is None:
        return window
    low = None if window.low is None else min(window.low, window.value - half)
    high = None if window.high is None else max(window.high, window.value + half)
    return Interval(value=window.value, low=low, high=high)


def _cut(latency_s: Floats, sizes: Sequence[int]) -> list[tuple[Floats, list[int]]]:
    return [(latency_s[start:end], _sizes_between(sizes, start, end)) for start, end in _thirds(sizes)]


def _thirds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Three parts of the concatenated rounds, of whole rounds where there are enough of them."""
    total = sum(sizes)
    known = [size for size in sizes if size]
    if tell_noise(known):
        edges = np.cumsum([0, *(int(part.sum()) for part in np.array_split(np.array(known), WINDOWS))])
        return [(int(start), int(end)) for start, end in itertools.pairwise(edges)]
    return [(total * part // WINDOWS, total * (part + 1) // WINDOWS) for part in range(WINDOWS)]


def _sizes_between(sizes: Sequence[int], start: int, end: int) -> list[int]:
    edges = np.clip(np.cumsum([0, *sizes]), start, end)
    return [int(size) for size in np.diff(edges) if size > 0]


def _level(values: Floats, counts: Sequence[int], p: float) -> Interval:
    """A window's quantile whatever its floor: windows are compared, not published."""
    found = quantile(values, counts, p, 1.0, CONFIDENCE)
    return Interval(value=float(np.quantile(values, p)), low=found.low, high=found.high)


def _inverse(interval: Interval) -> Interval:
    low, value, high = (
        None if end is None or end <= 0 else 1 / end for end in (interval.high, interval.value, interval.low)
    )
    return Interval(value=value, low=low, high=high)


def _open_rates(measured: Measured) -> list[Interval]:
    per_window = 7  # slices; three times seven are about the 20 blocks of a quantile's interval
    rates = slice_rates(measured.windows, measured.replies_ns, WINDOWS * per_window)
    return [mean_interval(part, CONFIDENCE) for part in np.array_split(rates, WINDOWS)]


def _judge(quantity: str, windows: Sequence[Interval], most: float) -> Spread:
    known = [window for window in windows if window.value is not None]
    if len(known) < WINDOWS:
        return Spread(quantity=quantity, ratio=None, most=most, problem="")
    lowest = min(known, key=lambda window: window.value or 0.0)
    highest = max(known, key=lambda window: window.value or 0.0)
    if not lowest.value or highest.value is None:
        return Spread(quantity=quantity, ratio=None, most=most, problem="")
    ratio = highest.value / lowest.value
    if ratio <= most or lowest.overlaps(highest):
        return Spread(quantity=quantity, ratio=ratio, most=most, problem="")
    allowed = f"steady is at most {units.format_number(most)}" if most > 1 else "their intervals are apart"
    text = f"{quantity} differs between thirds of the run by a factor of {units.format_number(ratio)} ({allowed})"
    return Spread(quantity=quantity, ratio=ratio, most=most, problem=text)
