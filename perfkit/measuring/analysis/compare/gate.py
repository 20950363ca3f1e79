"""Is the candidate worse than allowed? One-sided: only a change for the worse can fail.

A metric *fails* when its interval leaves out zero on the worse side and the shift reaches the allowance (and
twice the noise floor); it *passes* when even the worse end of its interval stays within the allowance.
Neither is *open*.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from perfkit.measuring.analysis.compare.verdict import FLOORS, Findings, MetricShift
from perfkit.measuring.analysis.usable import MOST_ERRORS_RATIO

Result = Literal["passed", "failed", "open"]
Answer = Literal["passed", "regression", "inconclusive", "void"]
WORSE_THAN_RATIO = 0.05
"""The allowance where nobody names one (judgement)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """One metric's result; `worse_ratio` is how much worse the candidate is, negative = better.

    `worst_ratio` is the worse end of its interval, None where there is none.
    """

    shift: MetricShift
    worse_ratio: float
    worst_ratio: float | None
    result: Result


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The answer, from all metrics that had enough values."""

    answer: Answer
    worse_than_ratio: float
    lines: tuple[GateLine, ...]
    fails_more: bool  # more requests fail than with the baseline

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        results = [
            {
                "metric": line.shift.metric.name,
                "result": line.result,
                "worse_ratio": line.worse_ratio,
                "worst_ratio": line.worst_ratio,
            }
            for line in self.lines
        ]
        return {
            "answer": self.answer,
            "worse_than_ratio": self.worse_than_ratio,
            "fails_more": self.fails_more,
            "results": results,
        }


def gate(findings: Findings, worse_than_ratio: float = WORSE_THAN_RATIO) -> Gate:
    """Judge a candidate (B) against its baseline (A)."""
    lines = tuple(_line(one, worse_than_ratio) for one in findings.judged)
    fails_more = findings.errors_ratio[1] > findings.errors_ratio[0] + MOST_ERRORS_RATIO
    return Gate(
        answer=_answer(findings, lines, fails_more),
        worse_than_ratio=worse_than_ratio,
        lines=lines,
        fails_more=fails_more,
    )


def _answer(findings: Findings, lines: tuple[GateLine, ...], fails_more: bool) -> Answer:
    if findings.verdict == "void":
        return "void"
    if fails_more or any(line.result == "failed" for line in lines):
        return "regression"
    return "passed" if lines and all(line.result == "passed" for line in lines) else "inconclusive"


def _line(one: MetricShift, worse_than_ratio: float) -> GateLine:
    shift = one.shift
    assert shift is not None
    sign = -1.0 if one.metric.is_more_better else 1.0
    worse = sign * shift.value_ratio
    worst = shift.low_ratio if one.metric.is_more_better else shift.high_ratio
    worst = None if worst is None else sign * worst
    is_alarm = shift.excludes_zero and worse >= max(worse_than_ratio, FLOORS * (one.noise_floor_ratio or 0.0))
    result: Result = "failed" if is_alarm else "passed" if worst is not None and worst < worse_than_ratio else "open"
    return GateLine(shift=one, worse_ratio=worse, worst_ratio=worst, result=result)
