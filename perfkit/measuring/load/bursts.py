"""What are bursty arrivals? A Poisson process whose rate jumps between two values at random: an MMPP of two states.

Bursts and the quiet between them last exponentially long; the mean over both is the load's rate. With no
arrivals in the quiet (`quiet_ratio` 0) it is an on/off process. How bursty it is, its index of dispersion
for counts says: variance over mean of the arrivals in an interval, 1 for Poisson (Fischer and
Meier-Hellstern, "The Markov-modulated Poisson process cookbook", Performance Evaluation 1993, section 2).
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence

from perfkit.clock import NS_PER_S
from perfkit.fields import Checked, field


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bursts(Checked):
    """How long bursts and the quiet between them last, and how quiet it is."""

    burst_s: float = field(0.5, "mean length of a burst (exponential)", low=0.001, high=3600.0)
    quiet_s: float = field(2.0, "mean length of the quiet between bursts (exponential)", low=0.001, high=3600.0)
    quiet_ratio: float = field(
        0.2, "rate in the quiet over the rate in a burst; 0 = on/off, 1 = plain Poisson", low=0.0, high=1.0
    )

    @property
    def burst_factor(self) -> float:
        """Rate in a burst over the mean rate."""
        return (self.burst_s + self.quiet_s) / (self.burst_s + self.quiet_ratio * self.quiet_s)

    @property
    def quiet_factor(self) -> float:
        """Rate in the quiet over the mean rate."""
        return self.quiet_ratio * self.burst_factor

    @property
    def relaxation_s(self) -> float:
        """How fast the process forgets in which state it was: 1 / (1 / burst_s + 1 / quiet_s)."""
        return self.burst_s * self.quiet_s / (self.burst_s + self.quiet_s)


def dispersion_index(bursts: Bursts, rate_rps: float, interval_s: float = math.inf) -> float:
    """Variance over mean of the arrivals in an interval; without one, the limit for long intervals.

    I(t) = 1 + 2 p (1 - p) (l1 - l2)^2 T / l * (1 - (1 - exp(-t / T)) / (t / T)), where p is the share of
    time in bursts, l1 and l2 the two rates, l the mean rate and T the relaxation time.
    """
    share = bursts.burst_s / (bursts.burst_s + bursts.quiet_s)
    gap_rps = rate_rps * (bursts.burst_factor - bursts.quiet_factor)
    excess = 2 * share * (1 - share) * gap_rps**2 * bursts.relaxation_s / rate_rps
    turns = interval_s / bursts.relaxation_s
    return 1 + excess * (1.0 if math.isinf(turns) else 1 + math.expm1(-turns) / turns)


def burst_spans(bursts: Bursts, seconds: float, source: random.Random) -> Iterator[tuple[float, float]]:
    """(end in seconds, rate over the mean rate) of each state in turn, up to the end; begins in equilibrium."""
    at_s = 0.0
    is_burst = source.random() < bursts.burst_s / (bursts.burst_s + bursts.quiet_s)
    while at_s < seconds:
        at_s += source.expovariate(1 / (bursts.burst_s if is_burst else bursts.quiet_s))
        yield min(at_s, seconds), bursts.burst_factor if is_burst else bursts.quiet_factor
        is_burst = not is_burst


def counted_dispersion(offsets_ns: Sequence[int], seconds: float, interval_s: float = 1.0) -> float | None:
    """Variance over mean of the counts in the whole intervals of a schedule; None for fewer than 10 of them."""
    intervals = int(seconds / interval_s)
    if intervals < 10:
        return None
    counts = [0] * intervals
    width_ns = round(interval_s * NS_PER_S)
    for offset_ns in offsets_ns:
        if offset_ns < intervals * width_ns:
            counts[offset_ns // width_ns] += 1
    mean = sum(counts) / intervals
    return sum((count - mean) ** 2 for count in counts) / (intervals - 1) / mean if mean else None
