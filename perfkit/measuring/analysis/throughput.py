"""How many good replies a second, and how sure is that?

Open loop: replies are counted in equal time slices, whose spread gives Student's interval. Closed loop:
N users and think time Z fix X = N / (R + Z), so the interval is that of the mean latency R over
contiguous blocks; counting in slices would see the steps of whole batches as noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from perfkit.measuring.analysis.blocks import (
    Floats,
    Interval,
    block_edges,
    block_means,
    blocks_per_round,
    mean_interval,
)
from perfkit.measuring.analysis.measured import Measured
from perfkit.measuring.analysis.rounds import split_rounds, tell_noise
from perfkit.measuring.analysis.warmup import Window

BLOCKS = 20  # as for quantiles
CLOSED_METHOD = "replies over time; interval of N / (R + Z) from 20 contiguous blocks, or from rounds that differ more"
OPEN_METHOD = "replies over time; Student's interval over 20 time slices, or over rounds that differ more"


def throughput(measured: Measured, think_s: float, closed: bool) -> Interval:
    """Good replies a second over all windows, with its 95 % interval."""
    value = measured.throughput_rps
    if value is None or measured.replies == 0:
        return Interval(value=value, low=None, high=None)
    if closed:
        relative = _relative_half_width(measured, think_s)
    else:
        rates = mean_interval(slice_rates(measured.windows, measured.replies_ns, BLOCKS))
        relative = _wider(rates, round_rates(measured))
    if relative is None:
        return Interval(value=value, low=None, high=None)
    return Interval(value=value, low=max(0.0, value * (1 - relative)), high=value * (1 + relative))


def _relative_half_width(measured: Measured, think_s: float) -> float | None:
    answered = np.isfinite(measured.latency_s)
    sizes = finite_sizes(measured)
    latency_s = measured.latency_s[answered]
    of_rounds = [float(part.mean()) + think_s for part in split_rounds(latency_s, sizes)]
    return _wider(loop_time(latency_s, sizes, think_s), of_rounds)


def _wider(of_blocks: Interval, of_rounds: Sequence[float]) -> float | None:
    """Half the relative width of the wider interval of a mean: from blocks, or from rounds where they are enough."""
    found = [of_blocks, mean_interval(np.array(of_rounds))] if tell_noise(of_rounds) else [of_blocks]
    halves = [one.high / one.value - 1 for one in found if one.high is not None and one.value]
    return max(halves, default=None)


def round_rates(measured: Measured) -> list[float]:
    """Good replies a second in each round that was measured at all."""
    spans = zip(measured.windows, measured.replies_ns, strict=True)
    return [len(replies) / window.seconds for window, replies in spans if window.seconds > 0]


def finite_sizes(measured: Measured) -> list[int]:
    """Answered requests of each window, without those whose client gave up."""
    edges = np.cumsum([0, *measured.sizes])
    answered = np.isfinite(measured.latency_s)
    return [int(answered[start:end].sum()) for start, end in itertools.pairwise(edges)]


def loop_time(latency_s: Floats, sizes: Sequence[int], think_s: float, confidence: float = 0.95) -> Interval:
    """Mean time of one turn of a closed loop, R + Z, with its interval."""
    if len(latency_s) == 0:
        return Interval(value=None, low=None, high=None)
    means = block_means(latency_s, block_edges(sizes, max(1, min(BLOCKS, len(latency_s) // 2))))
    return mean_interval(means + think_s, confidence)


def slice_rates(windows: Sequence[Window], replies_ns: Sequence[Floats], count: int) -> Floats:
    """Replies a second in about `count` equal slices of the windows' time."""
    shares = blocks_per_round([window.seconds for window in windows], count)
    rates: list[float] = []
    for window, replies, slices in zip(windows, replies_ns, shares, strict=True):
        edges = np.linspace(window.start_ns, window.end_ns, slices + 1)
        counts, _ = np.histogram(replies, edges)
        rates += list(counts / (window.seconds / slices))
    return np.array(rates)
