"""Is a quantile's interval narrow enough yet, and if not, how long would it take?

A run that stops when it likes what it sees is biased. Here the instants at which it may look are fixed before it
starts, each twice as late as the one before, and the interval of every look is widened so that all looks together
err in 5 % of runs at most (Bonferroni, a group-sequential rule). A look asks how wide the interval is, never where.
"""

from __future__ import annotations

import dataclasses
import re

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.floors import floor_count
from perfkit.measuring.analysis.latency import BLOCKS, Quantile

QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
ERROR = 0.05  # of all looks together
GROWTH = 2.0  # judgement: fewer looks cost less confidence than the wait for the next one costs time
ORIGIN = f"asked for; looks at doubling instants, their intervals together hold in {1 - ERROR:.0%} of runs (Bonferroni)"
_FORM = re.compile(r"(p\d+):([0-9.]+)(%?)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How well a quantile shall be known: half of its interval's width relative to its value, at most."""

    quantile: str
    target_ratio: float
    looks_s: tuple[float, ...]

    @property
    def p(self) -> float:
        """The quantile's probability."""
        return QUANTILES[self.quantile]

    @property
    def confidence(self) -> float:
        """That of each look's interval."""
        return 1 - ERROR / len(self.looks_s)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How well a quantile is known. `needs_s` is the whole time that the goal would take, at least when `is_bound`."""

    half_width_ratio: float | None
    is_reached: bool
    needs_s: float | None
    is_bound: bool


def parse_goal(text: str, first_s: float, most_s: float) -> Goal:
    """`p99:5%` or `p99:0.05`, looked at first after `first_s`, for the last time after `most_s`; raises ConfigError."""
    found = _FORM.fullmatch(text.strip())
    allowed = "write a quantile (p50, p95 or p99) and the half-width, as p99:5%"
    if found is None or found[1] not in QUANTILES:
        raise ConfigError(f"--until is {text!r}; {allowed}")
    try:
        target = float(found[2]) / (100 if found[3] else 1)
    except ValueError:
        raise ConfigError(f"--until is {text!r}, and {found[2]} is no number; {allowed}") from None
    if not 0 < target < 1:
        raise ConfigError(f"--until asks for ±{target:.0%}; take more than 0 and less than 100%")
    if not 0 < first_s <= most_s:
        raise ConfigError(f"--seconds is {first_s:g} and --most-seconds {most_s:g}; the first look comes first")
    return Goal(quantile=found[1], target_ratio=target, looks_s=look_instants(first_s, most_s))


def look_instants(first_s: float, most_s: float) -> tuple[float, ...]:
    """Seconds after the start at which a run looks: the first, twice as late each time, and the last."""
    instants = []
    while first_s < most_s:
        instants.append(first_s)
        first_s *= GROWTH
    return (*instants, most_s)


def judge_precision(goal: Goal, found: Quantile, seconds: float) -> Precision:
    """`found` is the goal's quantile with its interval at the goal's confidence, from so many seconds."""
    if found.value and found.low is not None and found.high is not None:
        half = (found.high - found.low) / 2 / found.value
        is_reached = half <= goal.target_ratio
        needs_s = None if is_reached else seconds * (half / goal.target_ratio) ** 2
        return Precision(half_width_ratio=half, is_reached=is_reached, needs_s=needs_s, is_bound=False)
    least = max(floor_count(goal.p), _upper_end_count(goal))
    needs_s = seconds * least / found.n_eff if found.n_eff > 0 and seconds > 0 else None
    return Precision(half_width_ratio=None, is_reached=False, needs_s=needs_s, is_bound=True)


def _upper_end_count(goal: Goal) -> float:
    """Effective requests from which the interval has an upper end."""
    from scipy.special import stdtrit

    return float(stdtrit(BLOCKS - 1, 0.5 + goal.confidence / 2)) ** 2 * goal.p / (1 - goal.p)


def settled(latency_s: Floats, users: int) -> Floats:
    """Latencies in the order of their schedule without their warm-up and a closed loop's first requests."""
    import numpy as np

    from perfkit.measuring.analysis.warmup import mser_cut

    answered = np.flatnonzero(np.isfinite(latency_s))
    cut = mser_cut(latency_s[answered])
    first = int(answered[cut.dropped]) if cut.dropped else 0
    return latency_s[max(first, min(users, len(latency_s) // 2)) :]
