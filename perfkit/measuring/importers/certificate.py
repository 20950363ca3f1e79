"""How far can single requests of a foreign run be trusted, by the rules that perfkit's own runs are graded by?

Only what the file allows: no conservation, no gauge, no health of the generator. A result without single
requests gets no grade at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.grading import Grade, describe_shortfalls, grade
from perfkit.measuring.analysis.latency import Quantile, quantile
from perfkit.measuring.analysis.stability import CONFIDENCE, MOST_SPREAD, WINDOWS
from perfkit.measuring.analysis.warmup import mser_cut
from perfkit.units import format_number

_LEAST_REQUESTS = 20  # of a third: with fewer its median has no interval to speak of
_GRADED = {"p95": 0.95, "p99": 0.99}
UNSETTLED = "the latencies never settle: the run is too short to see the end of its warm-up"


def certify(latency_s: Floats, quantiles: Mapping[float, Quantile]) -> Grade:
    """The grade of answered requests in the order of their start."""
    if not len(latency_s):
        return grade(["no request was answered"], (), ())
    shortfalls = describe_shortfalls({name: quantiles[p] for name, p in _GRADED.items()}, warmup_judged=True)
    return grade((), tuple(_problems(latency_s)), shortfalls)


def _problems(latency_s: Floats) -> Iterator[str]:
    if mser_cut(latency_s).ended is False:
        yield UNSETTLED
    thirds = np.array_split(latency_s, WINDOWS)
    if min(map(len, thirds)) < _LEAST_REQUESTS:
        return
    medians = [(float(np.median(part)), quantile(part, [len(part)], 0.5, 1.0, CONFIDENCE).interval) for part in thirds]
    (least, low), _, (most, high) = sorted(medians, key=lambda one: one[0])
    if least > 0 and most / least > MOST_SPREAD and not low.overlaps(high):
        ratio = format_number(most / least)
        yield f"P50 differs between thirds of the run by a factor of {ratio} (steady is at most {MOST_SPREAD:g})"
