"""6: is the time of a call a straight line in its batch size, and what does batching gain?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import EAGER, GRAPH, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import quantile, worker

LINE = Claim("6.line", MUST, "from 8 requests on a call takes alpha + beta · size")
GAIN = Claim("6.gain", MUST, "32 requests in a call give at least 4 times the throughput of 1")
KNEE = Claim("6.knee", VERDICT, "the batch size from which a larger one gains less than a tenth")
SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)
LEAST_R2 = 0.98
LEAST_GAIN_RATIO = 4.0
_LEAST_STEP_GAIN_RATIO = 1.1
_LINE_FROM = 8
_WARM_UP = 3

Curve = Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """T = alpha + beta · size by least squares, and the share of the variance that it explains."""

    alpha_s: float
    beta_s: float
    r2: float


def measure(bench: Bench, effort: Effort) -> dict[str, Curve]:
    """Median device time of a call by level and size, inputs on the device."""
    rounds = effort.count(30)
    curves: dict[str, Curve] = {}
    for level in (EAGER, GRAPH):
        with worker(bench) as mine:
            encoder, curve = bench.encoder(level, SIZES), {}
            for size in SIZES:
                inputs = mine.put(bench.texts(size, seed=size))
                for _ in range(_WARM_UP):
                    mine.call(encoder, inputs)
                curve[size] = quantile([mine.call(encoder, inputs).device_s for _ in range(rounds)], 0.5)
        curves[level] = curve
    return curves


def fit(curve: Curve) -> Fit:
    """The straight part of a curve."""
    points = [(float(size), seconds) for size, seconds in curve.items() if size >= _LINE_FROM]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    beta = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    alpha = mean_y - beta * mean_x
    scatter = sum((y - mean_y) ** 2 for _, y in points)
    rest = sum((y - alpha - beta * x) ** 2 for x, y in points)
    return Fit(alpha_s=alpha, beta_s=beta, r2=1.0 - rest / scatter if scatter else 0.0)


def knee(curve: Curve) -> int:
    """The smallest size at which doubling gains less than a tenth; the largest size where it always gains more."""
    doubled = [size for size in curve if 2 * size in curve]
    return next((size for size in doubled if _gain(curve, size, 2 * size) < _LEAST_STEP_GAIN_RATIO), max(curve))


def judge(found: Mapping[str, Curve]) -> list[Line]:
    """Both levels must hold."""
    fits = {level: fit(curve) for level, curve in found.items()}
    gains = {level: _gain(curve, 1, 32) for level, curve in found.items()}
    knees = {level: knee(curve) for level, curve in found.items()}
    lines = {
        level: {"alpha_s": one.alpha_s, "beta_s": one.beta_s, "r2": one.r2, "seconds_by_size": dict(found[level])}
        for level, one in fits.items()
    }
    return [
        LINE.judged(
            all(one.r2 >= LEAST_R2 and one.beta_s > 0 for one in fits.values()),
            lines,
            f"R² {_by_level({level: f'{one.r2:.4f}' for level, one in fits.items()})}, {LEAST_R2:g} is needed",
        ),
        GAIN.judged(
            all(gain >= LEAST_GAIN_RATIO for gain in gains.values()),
            gains,
            f"{_by_level({level: f'{gain:.1f} times' for level, gain in gains.items()})}, 4 is needed",
        ),
        KNEE.recorded(knees, f"the knee lies at {_by_level({level: str(size) for level, size in knees.items()})}"),
    ]


def _gain(curve: Curve, small: int, large: int) -> float:
    return (large / curve[large]) / (small / curve[small])


def _by_level(texts: Mapping[str, str]) -> str:
    return ", ".join(f"{text} ({level})" for level, text in texts.items())


CHECK = Check(number=6, name="batch curve", cap_s=30.0, claims=(LINE, GAIN, KNEE), measure=measure, judge=judge)
