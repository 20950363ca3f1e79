"""4: does every request get its own outputs, with eight streams at once and memory that is spoiled after use?

Inputs are overwritten on the compute stream once they are used, and outputs on the host once they are
compared: what is handed on too early shows as NaN, and what is mixed up as another request's outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from perfkit.measuring.gpucheck.bench import Bench, Work
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closeness import error_ratio
from perfkit.measuring.gpucheck.line import MUST, Claim, Line
from perfkit.measuring.gpucheck.worker import lane, request, together

MIXED = Claim("4.mismatches", MUST, "no request gets another one's outputs")
ALLOWED_ERROR_RATIO = 1e-3  # float32 in another order of summing stays below 1e-5; two rows differ by 0.1 and more
_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of all threads."""

    requests: int
    mismatches: int
    worst_error_ratio: float


def measure(bench: Bench, effort: Effort) -> Figures:
    """Distinct inputs throughout."""
    rounds = effort.count(200)

    def work(number: int, begin: Callable[[], None]) -> list[float]:
        batches = [bench.mlp_batch(number * rounds + at) for at in range(rounds)]
        expected = bench.mlp_expected(batches)
        errors: list[float] = []
        with lane(bench, f"safety-{number}") as mine:
            predict = _spoiling(bench.mlp())
            begin()
            for batch, right in zip(batches, expected, strict=True):
                outputs, _ = request(bench, mine, predict, batch)
                errors.append(error_ratio(outputs, right))
                outputs.fill_(math.nan)
        return errors

    errors = [error for errors in together(_THREADS, work) for error in errors]
    return Figures(
        requests=len(errors),
        mismatches=sum(error > ALLOWED_ERROR_RATIO for error in errors),
        worst_error_ratio=max(errors),
    )


def _spoiling(predict: Work) -> Work:
    def call(inputs: Any) -> Any:
        outputs = predict(inputs)
        inputs.fill_(math.nan)
        return outputs

    return call


def judge(found: Figures) -> list[Line]:
    """None may be mixed up."""
    return [
        MIXED.judged(
            found.mismatches == 0,
            {
                "requests": found.requests,
                "mismatches": found.mismatches,
                "worst_error_ratio": found.worst_error_ratio,
            },
            f"{found.mismatches} of {found.requests} requests got other outputs than their own",
        )
    ]


CHECK = Check(number=4, name="stream safety", cap_s=30.0, claims=(MIXED,), measure=measure, judge=judge)
