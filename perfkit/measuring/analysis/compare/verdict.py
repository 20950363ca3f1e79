"""Is B faster or slower than A, do they not differ, or can it not be told from these runs?

An alarm needs two things: the interval leaves out zero, and the shift reaches what matters, which is the
margin or twice the noise floor of A against A, whichever is larger. *No difference* is a claim too: the whole
interval lies within the margin. Everything else is inconclusive. The intervals of all judged metrics hold
together with 95 % (Bonferroni), so that looking at more metrics raises no more false alarms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from perfkit.measuring.analysis.blocks import Floats
from perfkit.measuring.analysis.compare.detectable import detectable_ratio, pairs_needed
from perfkit.measuring.analysis.compare.replicate import METRICS, Metric, Replicate
from perfkit.measuring.analysis.compare.shift import Shift, noise_floor_ratio, paired_shift, unpaired_shift
from perfkit.measuring.analysis.usable import MOST_ERRORS_RATIO

Verdict = Literal["faster", "slower", "no difference", "inconclusive"]
Overall = Literal["faster", "slower", "mixed", "no difference", "inconclusive", "void"]

MARGIN_RATIO = 0.03
"""The least change that matters: MEASUREMENT's comparison rule."""
FLOORS = 2.0  # the same rule: no alarm within twice the noise floor
ALPHA = 0.05
_LEAST = 2  # values a side without which nothing can be said


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """By what a comparison is judged: the change that matters, the joint error, the metrics."""

    margin_ratio: float = MARGIN_RATIO
    alpha: float = ALPHA
    metrics: tuple[Metric, ...] = METRICS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MetricShift:
    """One metric of B against A. Without enough values there is no shift and no verdict, and `missing` says so.

    `a` and `b` are medians over the runs; `spread_ratio` is the coefficient of variation of one run,
    `noise_floor_ratio` how far A lies from A by chance, `threshold_ratio` what an alarm takes,
    `detectable_ratio` the change that 80 % of such comparisons would find.
    """

    metric: Metric
    a: float | None
    b: float | None
    shift: Shift | None
    confidence_ratio: float
    spread_ratio: float | None
    noise_floor_ratio: float | None
    threshold_ratio: float | None
    detectable_ratio: float | None
    missing: int
    verdict: Verdict | None

    def pairs_for(self, effect_ratio: float, margin_ratio: float = MARGIN_RATIO) -> int | None:
        """Pairs that would find such a change in 80 % of comparisons; None when no number would."""
        if self.spread_ratio is None:
            return None
        return pairs_needed(self.spread_ratio, effect_ratio, margin_ratio, 1 - self.confidence_ratio)

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        shift = None if self.shift is None else dataclasses.asdict(self.shift)
        same = ("a", "b", "confidence_ratio", "spread_ratio", "noise_floor_ratio", "threshold_ratio")
        more = ("detectable_ratio", "missing", "verdict")
        return {
            "metric": self.metric.name,
            "shift": shift,
            **{name: getattr(self, name) for name in (*same, *more)},
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the runs of A and B say. `counted` are the runs a side that were not void."""

    verdict: Overall
    metrics: tuple[MetricShift, ...]
    is_paired: bool
    counted: tuple[int, int]
    errors_ratio: tuple[float, float]

    @property
    def judged(self) -> tuple[MetricShift, ...]:
        """The metrics that had enough values."""
        return tuple(metric for metric in self.metrics if metric.verdict is not None)


def compare_replicates(a: Sequence[Replicate], b: Sequence[Replicate], is_paired: bool, rule: Rule) -> Findings:
    """Judge B against A; paired when a[i] and b[i] were measured one after the other.

    A void run counts for nothing, and takes its partner in a pair with it.
    """
    values = {metric: _values(metric, a, b, is_paired) for metric in rule.metrics}
    most = min(len(a), len(b))
    judged = [metric for metric, (ours, theirs) in values.items() if _is_enough(min(len(ours), len(theirs)), most)]
    alpha = rule.alpha / max(1, len(judged))
    found = tuple(
        _judge(metric, values[metric], is_paired, rule, alpha) if metric in judged else _unjudged(metric, alpha)
        for metric in rule.metrics
    )
    counted = (sum(not one.is_void for one in a), sum(not one.is_void for one in b))
    errors = (_mean_errors(a), _mean_errors(b))
    return Findings(
        verdict=overall([one.verdict for one in found if one.verdict], errors, min(counted)),
        metrics=tuple(dataclasses.replace(one, missing=_missing(values[one.metric], a, b)) for one in found),
        is_paired=is_paired,
        counted=counted,
        errors_ratio=errors,
    )


def overall(verdicts: Sequence[Verdict], errors_ratio: tuple[float, float], counted: int) -> Overall:
    """One word for all metrics. A side that fails more of its requests is slower, whatever else it does."""
    if counted == 0:
        return "void"
    slower = "slower" in verdicts or errors_ratio[1] > errors_ratio[0] + MOST_ERRORS_RATIO
    if slower:
        return "mixed" if "faster" in verdicts else "slower"
    if "faster" in verdicts:
        return "faster"
    return "no difference" if verdicts and set(verdicts) == {"no difference"} else "inconclusive"


def _is_enough(usable: int, most: int) -> bool:
    return usable >= _LEAST and 2 * usable >= most


def _values(metric: Metric, a: Sequence[Replicate], b: Sequence[Replicate], is_paired: bool) -> tuple[Floats, Floats]:
    """The metric's values a side; of pairs only those with both."""
    ours = [one.values.get(metric.name) for one in a]
    theirs = [one.values.get(metric.name) for one in b]
    if is_paired:
        both = [(x, y) for x, y in zip(ours, theirs, strict=True) if x is not None and y is not None]
        ours, theirs = [x for x, _ in both], [y for _, y in both]
    known = ([value for value in side if value is not None] for side in (ours, theirs))
    first, second = (np.array(side, dtype=np.float64) for side in known)
    return first, second


def _missing(values: tuple[Floats, Floats], a: Sequence[Replicate], b: Sequence[Replicate]) -> int:
    """Runs whose value did not count, on both sides."""
    return len(a) + len(b) - len(values[0]) - len(values[1])


def _mean_errors(runs: Sequence[Replicate]) -> float:
    known = [one.error_ratio for one in runs if not one.is_void]
    return float(np.mean(known)) if known else 0.0


def _unjudged(metric: Metric, alpha: float) -> MetricShift:
    return MetricShift(
        metric=metric,
        a=None,
        b=None,
        shift=None,
        confidence_ratio=1 - alpha,
        spread_ratio=None,
        noise_floor_ratio=None,
        threshold_ratio=None,
        detectable_ratio=None,
        missing=0,
        verdict=None,
    )


def _judge(metric: Metric, values: tuple[Floats, Floats], is_paired: bool, rule: Rule, alpha: float) -> MetricShift:
    a, b = values
    shift = paired_shift(a, b, alpha) if is_paired else unpaired_shift(a, b, alpha)
    runs = min(len(a), len(b))
    floor = noise_floor_ratio(a)
    threshold = max(rule.margin_ratio, FLOORS * floor)
    freedom = len(a) - 1 if is_paired else len(a) + len(b) - 2
    return MetricShift(
        metric=metric,
        a=float(np.median(a)),
        b=float(np.median(b)),
        shift=shift,
        confidence_ratio=1 - alpha,
        spread_ratio=shift.error_ratio * (runs / 2) ** 0.5,
        noise_floor_ratio=floor,
        threshold_ratio=threshold,
        detectable_ratio=detectable_ratio(shift.error_ratio, freedom, threshold, alpha),
        missing=0,
        verdict=_verdict(metric, shift, threshold, rule.margin_ratio),
    )


def _verdict(metric: Metric, shift: Shift, threshold_ratio: float, margin_ratio: float) -> Verdict:
    if shift.excludes_zero and abs(shift.value_ratio) >= threshold_ratio:
        return "faster" if (shift.value_ratio > 0) == metric.is_more_better else "slower"
    if shift.low_ratio is None or shift.high_ratio is None:
        return "inconclusive"
    is_within = -margin_ratio < shift.low_ratio and shift.high_ratio < margin_ratio
    return "no difference" if is_within else "inconclusive"
