"""How does throughput scale with the number of users, and what bends the curve?

Universal scalability law (Gunther 2007), X(N) = g N / (1 + s (N - 1) + k N (N - 1)): g is the throughput of a lone
user, s the contention (the share of work that only one may do at a time), k the coherence (work for each pair that
must agree). The throughput peaks at N = sqrt((1 - s) / k).

N / X = a + b N + c N (N - 1) with a = g' (1 - s), b = g' s, c = g' k and g' = 1 / g, so that s between 0 and 1 and k
of at least 0 are just three numbers that are not negative: weighted least squares under these bounds has one answer
and needs no start value. A free quadratic fit would give negative s.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.blocks import Floats, Interval
from perfkit.measuring.analysis.scaling.curve import Curve, closed_loop_of_users, mean_batch, superlinear
from perfkit.measuring.analysis.scaling.refusal import Refusal

LEAST_VALUES = 6  # three parameters, and as many values to contradict them
LEAST_BESIDE_KNEE = 2  # values below the knee and above it: the near side fixes g, the far side s and k
MOST_REACH_RATIO = 1.5  # beyond this times the largest N that was measured nothing is said
MOST_MISFIT_RATIO = 0.05  # judgement: a curve that misses a point by more, and by more than its noise, has another form
MOST_SCATTER_RATIO = 0.10  # judgement: as above, but within its noise
LEAST_PROBABILITY = 0.01  # of a chi square as large as that of the residuals, below which they are no noise
MOST_BATCH = 1.05  # requests a call on average up to which batching plays no part
BOOTSTRAPS = 1000
_CURVE_STEPS = 33


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UslFit:
    """A fit with its 95 % intervals; throughput in requests a second, contention and coherence without a unit.

    `peak` is the number of users with the largest throughput; its value is None when that lies beyond what may be
    said from these values. `worst_residual_ratio` is the largest distance between a point and the curve.
    """

    at_one_rps: Interval
    contention: Interval
    coherence: Interval
    peak: Interval
    worst_residual_ratio: float
    values: tuple[float, ...]
    draws: Floats  # (bootstraps, 3): a, b, c of each
    best: Floats  # a, b, c

    @property
    def reach(self) -> float:
        """The largest N that the fit speaks of."""
        return MOST_REACH_RATIO * self.values[-1]

    def throughput(self, users: float) -> Interval | Refusal:
        """Requests a second at so many users, with the interval of the curve (not of a new measurement)."""
        if not 1 <= users <= self.reach:
            return Refusal(
                reason=f"{users:g} users lie outside 1 to {self.reach:g}, "
                f"{MOST_REACH_RATIO:g} times the largest number that was measured; measure there"
            )
        low, high = np.percentile(_rates(self.draws, users), (2.5, 97.5))
        return Interval(value=float(_rates(self.best, users)), low=float(low), high=float(high))

    def shares(self, users: float) -> dict[str, float]:
        """What one turn at so many users consists of: own work, contention, coherence; they add up to 1."""
        parts = self.best * np.array([1.0, users, users * (users - 1)])
        lone = self.best[0] + self.best[1]  # one user waits for nobody
        return {
            "work": float(lone / parts.sum()),
            "contention": float((parts[1] - self.best[1]) / parts.sum()),
            "coherence": float(parts[2] / parts.sum()),
        }

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it; `curve` is the drawn line with its band, up to the reach."""
        between = map(float, np.geomspace(1, self.reach, _CURVE_STEPS)[1:-1])
        bands = [(users, self.throughput(users)) for users in sorted({*between, *self.values, self.reach})]
        return {
            "refusal": None,
            "at_one_rps": self.at_one_rps.to_json(),
            "contention": self.contention.to_json(),
            "coherence": self.coherence.to_json(),
            "peak": self.peak.to_json(),
            "shares_at_most": self.shares(self.values[-1]),
            "worst_residual_ratio": self.worst_residual_ratio,
            "values": list(self.values),
            "curve": [{"users": users} | band.to_json() for users, band in bands],
        }


def fit_usl(curve: Curve, seed: int = 0) -> UslFit | Refusal:
    """The law over the users of a closed loop, with bootstrap intervals; a refusal where it does not apply.

    The bootstrap redraws each point from its own interval, widened where the points scatter around the curve by more
    than their intervals say.
    """
    refusal = closed_loop_of_users(curve) or batching(curve) or superlinear(curve) or _too_few(curve)
    if refusal is not None:
        return refusal
    users, rates, errors = np.array(curve.values), curve.rates, curve.errors
    best = _solve(users, rates, errors)
    residuals = rates / _rates(best, users) - 1
    refusal = _misfit(curve, residuals) or _one_sided(curve, best)
    if refusal is not None:
        return refusal
    chi_square = float(np.sum((residuals * rates / errors) ** 2))
    scatter = math.sqrt(max(1.0, chi_square / (len(users) - 3)))
    noise = np.random.default_rng(seed).normal(size=(BOOTSTRAPS, len(users)))
    drawn = np.maximum(_rates(best, users) + noise * errors * scatter, 1e-9)
    draws = np.array([_solve(users, one, errors) for one in drawn])
    return _summary(curve, best, draws, float(np.abs(residuals).max()))


def _solve(users: Floats, rates: Floats, errors: Floats) -> Floats:
    """a, b, c of N / X, each point weighted by the variance of its throughput."""
    from scipy.optimize import nnls

    design = np.column_stack([np.ones_like(users), users, users * (users - 1)])
    turns = users / rates
    weights = rates / (turns * errors)  # one over the standard error of N / X, to first order
    solution, _ = nnls(design * weights[:, None], turns * weights)
    return np.asarray(solution, dtype=np.float64)


def _rates(parameters: Floats, users: Any) -> Floats:
    """X(N) for parameters whose last axis is (a, b, c)."""
    a, b, c = parameters[..., 0], parameters[..., 1], parameters[..., 2]
    return np.asarray(users / (a + b * users + c * users * (users - 1)), dtype=np.float64)


def _summary(curve: Curve, best: Floats, draws: Floats, worst_ratio: float) -> UslFit:
    both = np.vstack([best, draws])
    alone = both[:, 0] + both[:, 1]
    reach = MOST_REACH_RATIO * curve.values[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        peaks = np.where(both[:, 2] > 0, np.sqrt(np.maximum(both[:, 0], 0) / both[:, 2]), np.inf)
    peaks = np.where(peaks <= reach, peaks, np.inf)
    return UslFit(
        at_one_rps=_interval(1 / alone),
        contention=_interval(both[:, 1] / alone),
        coherence=_interval(both[:, 2] / alone),
        peak=_peak_interval(peaks, reach),
        worst_residual_ratio=worst_ratio,
        values=curve.values,
        draws=draws,
        best=best,
    )


def _interval(drawn: Floats) -> Interval:
    """The estimate stands first, the bootstrap behind it."""
    low, high = np.percentile(drawn[1:], (2.5, 97.5))
    value = float(drawn[0])
    return Interval(value=value, low=min(float(low), value), high=max(float(high), value))


def _peak_interval(peaks: Floats, reach: float) -> Interval:
    low, high = np.percentile(peaks[1:], (2.5, 97.5), method="closest_observation")
    value = float(max(peaks[0], 1.0))
    ends = (float(max(low, 1.0)), float(max(high, 1.0)))
    return Interval(
        value=value if math.isfinite(value) else None,
        low=min(ends[0], value) if math.isfinite(ends[0]) else reach,
        high=max(ends[1], value) if math.isfinite(ends[1]) else None,
    )


def batching(curve: Curve) -> Refusal | None:
    """Why the law is misspecified where the server batches: up to a full batch more users cost next to nothing."""
    for value, point in zip(curve.values, curve.points, strict=True):
        mean = mean_batch(point)
        if mean > MOST_BATCH:
            return Refusal(
                reason=f"dynamic batching: a call took {units.format_number(mean)} requests on average at "
                f"{value:g} users, so throughput follows the batch size and not contention; "
                "read the batch model, or scan with batch.max_size=1"
            )
    return None


def _too_few(curve: Curve) -> Refusal | None:
    known = np.isfinite(curve.errors) & (curve.errors > 0)
    if not known.all():
        value = f"{curve.values[int(np.argmin(known))]:g}"
        return Refusal(reason=f"the throughput at {value} users has no interval to be weighted by; measure longer")
    if len(curve.values) < LEAST_VALUES:
        return Refusal(
            reason=f"{len(curve.values)} usable numbers of users; it takes at least {LEAST_VALUES} to fit three "
            "parameters and see whether they hold"
        )
    if curve.values[0] != 1:
        return Refusal(reason=f"no point at 1 user (the least is {curve.values[0]:g}); without it g is a guess")
    return None


def _misfit(curve: Curve, residuals: Floats) -> Refusal | None:
    """Whether the points lie off the curve by more than their noise, or their noise would hide it if they did."""
    from scipy.special import chdtrc

    worst = int(np.argmax(np.abs(residuals)))
    off = float(abs(residuals[worst]))
    if off <= MOST_MISFIT_RATIO:
        return None
    chi_square = float(np.sum((residuals * curve.rates / curve.errors) ** 2))
    signs = "".join("+" if one > 0 else "-" for one in residuals)
    where = (
        f"{curve.values[worst]:g} users lie {units.format_percent(off)} {'above' if residuals[worst] > 0 else 'below'}"
    )
    if float(chdtrc(len(residuals) - 3, chi_square)) < LEAST_PROBABILITY:
        return Refusal(
            reason=f"residual pattern {signs}: {where} the curve, more than noise does, so it has another form (a pool "
            "that fills up, a queue that rejects, a machine that changed); read the bounds"
        )
    if off > MOST_SCATTER_RATIO:
        return Refusal(
            reason=f"residual pattern {signs}: {where} the curve, and with so much noise another form would not show; "
            "measure longer"
        )
    return None


def _one_sided(curve: Curve, best: Floats) -> Refusal | None:
    """Whether all values lie on one side of the knee: the curve then shows only one of its two parts."""
    knee = knee_of(best)
    below = sum(value <= knee for value in curve.values)
    if len(curve.values) - below >= LEAST_BESIDE_KNEE and below >= LEAST_BESIDE_KNEE:
        return None
    side, cure = ("below", "more users") if below > LEAST_BESIDE_KNEE else ("above", "fewer users")
    return Refusal(
        reason=f"nearly all numbers of users lie {side} the knee, so the other side of it would be a guess; "
        f"scan {cure}, {LEAST_BESIDE_KNEE} or more on each side"
    )


def knee_of(best: Floats) -> float:
    """Where g N meets the largest throughput of the fitted curve, however far; infinite for a line."""
    a, b, c = (float(one) for one in best)
    if c > 0:
        peak = max(1.0, math.sqrt(a / c))
        return float(_rates(best, peak)) * (a + b)
    return (a + b) / b if b > 0 else math.inf
