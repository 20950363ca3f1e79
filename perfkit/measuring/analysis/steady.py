"""Was the service in one steady state while it was measured?

Three views of the same latencies, each with a size below which it does not matter and a test that noise
of an autocorrelated series does not pass: steps between block means, a drift over the whole, and the
agreement of three windows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Floats, block_edges, block_means
from perfkit.measuring.analysis.rounds import split_rounds, tell_noise
from perfkit.measuring.analysis.stability import Spread, compare_windows
from perfkit.measuring.analysis.throughput import finite_sizes

if TYPE_CHECKING:
    from perfkit.measuring.analysis.measured import Measured

Trend = Literal["flat", "warmup", "slowdown", "none", "unknown"]

LEAST_BLOCKS = 30  # own trials: on fewer means a step is not told from noise
MOST_BLOCKS = 60  # more would find steps too short to matter
_LEAST_PER_BLOCK = 5  # the group of MSER-5: fewer latencies make no mean
LEAST_SEGMENT = 5  # blocks; a single stall is an outlier of P99, not a change of state
# Times ln(blocks), as in the warm-up study of Barrett et al. (OOPSLA 2017). Scaled by the variance inflation:
# without it 83 % of steady M/M/1 runs at load .8 were split (own trials).
PENALTY = 15.0
LEAST_STEP_RATIO = 0.10  # judgement: a smaller step or drift does not matter
DRIFT_CONFIDENCE = 0.99  # of Theil-Sen's interval; .95 would call 1 of 20 steady runs drifting


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of the mean latency: how far into the measured requests (0 to 1), from what to what."""

    at_ratio: float
    before_s: float
    after_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """What was seen. `warmup_ended` is None when the rounds are too short to tell."""

    trend: Trend
    warmup_ended: bool | None
    drift_ratio: float | None
    steps: tuple[Step, ...]
    spreads: tuple[Spread, ...]


def judge_steadiness(measured: Measured, think_s: float, closed: bool) -> Steadiness:
    """Looks at the pooled rounds of a run."""
    latency_s = measured.latency_s[np.isfinite(measured.latency_s)]
    spreads = compare_windows(measured, think_s, closed)
    return judge_latencies(latency_s, finite_sizes(measured), _warmup_ended(measured), spreads)


def judge_latencies(
    latency_s: Floats, sizes: Sequence[int], warmup_ended: bool | None, spreads: tuple[Spread, ...]
) -> Steadiness:
    """Looks at answered requests in order, `sizes` of them in each round."""
    means = _blocks(latency_s, sizes)
    steps = find_steps(means) if means is not None else ()
    drift = _drift(means, split_rounds(latency_s, sizes)) if means is not None else None
    return Steadiness(
        trend="unknown" if means is None else _trend(means, steps, drift),
        warmup_ended=warmup_ended,
        drift_ratio=drift,
        steps=steps,
        spreads=spreads,
    )


def _blocks(latency_s: Floats, sizes: Sequence[int]) -> Floats | None:
    count = min(MOST_BLOCKS, len(latency_s) // _LEAST_PER_BLOCK)
    return block_means(latency_s, block_edges(sizes, count)) if count >= LEAST_BLOCKS else None


def _warmup_ended(measured: Measured) -> bool | None:
    """Of many rounds some miss the end by chance; most of them must have seen it."""
    seen = [window.warmup_ended for window in measured.windows if window.warmup_ended is not None]
    return 2 * sum(seen) >= len(seen) if seen else None


def find_steps(means: Floats) -> tuple[Step, ...]:
    """Steps between block means, by binary segmentation, in order."""
    return tuple(_split(means, 0, len(means), len(means)))


def _split(means: Floats, start: int, end: int, total: int) -> list[Step]:
    part = means[start:end]
    if len(part) < 2 * LEAST_SEGMENT:
        return []
    cuts = np.arange(LEAST_SEGMENT, len(part) - LEAST_SEGMENT + 1)
    sums = np.cumsum(part)
    before, after = sums[cuts - 1] / cuts, (sums[-1] - sums[cuts - 1]) / (len(part) - cuts)
    gains = cuts * (len(part) - cuts) / len(part) * (before - after) ** 2
    best = int(np.argmax(gains))
    cut, low, high = int(cuts[best]), float(before[best]), float(after[best])
    rest = np.concatenate([part[:cut] - low, part[cut:] - high])
    noise = float(np.sum(rest**2)) / (len(part) - 2) * _inflation(rest)
    is_real = gains[best] > PENALTY * np.log(total) * noise
    if not is_real or abs(high - low) <= LEAST_STEP_RATIO * min(low, high):
        return []
    middle = start + cut
    step = Step(at_ratio=middle / total, before_s=low, after_s=high)
    return [*_split(means, start, middle, total), step, *_split(means, middle, end, total)]


def find_drift(means: Floats) -> float | None:
    """Change over the whole run relative to the median, or None when it may be nothing (Theil-Sen)."""
    from scipy.stats import theilslopes

    median = float(np.median(means))
    if median == 0:  # a file whose clock tells no time of most requests
        return None
    slope, intercept, low, high = theilslopes(means, np.arange(len(means)), alpha=DRIFT_CONFIDENCE)
    wider = _inflation(means - intercept - slope * np.arange(len(means))) ** 0.5
    is_real = slope - (slope - low) * wider > 0 or slope + (high - slope) * wider < 0
    change = float(slope) * len(means) / median
    return change if is_real and abs(change) > LEAST_STEP_RATIO else None


def _drift(means: Floats, rounds: Sequence[Floats]) -> float | None:
    """A drift of the block means; where the rounds tell how much they differ, one that they show as well."""
    found = find_drift(means)
    if found is None or not tell_noise(rounds):
        return found
    return found if find_drift(np.array([part.mean() for part in rounds])) is not None else None


def _inflation(rest: Floats) -> float:
    """How much autocorrelation of the residuals inflates the variance of a mean: (1 + r) / (1 - r)."""
    spread = float(np.dot(rest, rest))
    if spread == 0:
        return 1.0
    lag_one = min(max(float(np.dot(rest[:-1], rest[1:])) / spread, 0.0), 0.95)
    return (1 + lag_one) / (1 - lag_one)


def _trend(means: Floats, steps: Sequence[Step], drift: float | None) -> Trend:
    """The classes of Barrett et al. (OOPSLA 2017), by where the fastest segment lies."""
    if not steps:
        return "flat" if drift is None else "slowdown" if drift > 0 else "warmup"
    levels = [steps[0].before_s, *(step.after_s for step in steps)]
    if 1 - steps[-1].at_ratio < 1 / 3:
        return "none"  # the last level has not lasted long enough to be one
    return "warmup" if levels[-1] <= min(levels) else "slowdown"


def describe_warmup(found: Steadiness) -> str:
    """Why the warm-up is a problem; empty when it is none."""
    if found.warmup_ended is not False:
        return ""
    return "the warm-up had not ended in most rounds (MSER-5 at its limit); measure longer"


def describe_steps(found: Steadiness) -> tuple[str, ...]:
    """One line a step."""
    return tuple(
        f"mean latency stepped from {units.format_duration(step.before_s)} to {units.format_duration(step.after_s)} "
        f"after {units.format_percent(step.at_ratio)} of the requests"
        for step in found.steps
    )


def describe_drift(found: Steadiness) -> str:
    """How far the latency drifted; empty without a drift, or where steps tell it."""
    if found.drift_ratio is None or found.steps:
        return ""
    return f"latency drifted by {units.format_percent(found.drift_ratio)} over the run ({found.trend})"
