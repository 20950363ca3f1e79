"""1: does the device compute what the CPU computes, and what does the first request of a fresh worker cost?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import EAGER, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closeness import error_ratio
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import lane, quantile, request, together

OUTPUTS = Claim("1.outputs", MUST, "outputs are finite and equal the CPU's")
FIRST = Claim("1.first_request", VERDICT, "the first request of the process against the usual one")
ALLOWED_ERROR_RATIO = 1e-2  # bfloat16 against float32
EXPECTED_FIRST_RATIO = 5.0
_WORKERS = 4
_TEXTS = 2  # the CPU takes a second or two for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of all workers; the first latency is that of the first worker, whose process had computed nothing yet."""

    opened_s: float
    worst_error_ratio: float
    first_s: float
    first_of_later_workers_s: float
    p50_s: float


def measure(bench: Bench, effort: Effort) -> Figures:
    """One worker first, then the others beside each other."""
    rounds = effort.count(20)
    batches = [bench.texts(1, seed) for seed in range(_TEXTS)]
    expected = [bench.expected(batch) for batch in batches]

    def work(number: int, begin: Callable[[], None]) -> tuple[list[float], float]:
        with lane(bench, f"first-{number}") as mine:
            encoder = bench.encoder(EAGER)
            begin()
            worst, latencies = 0.0, []
            for at in range(rounds):
                outputs, served = request(bench, mine, encoder, batches[at % _TEXTS])
                latencies.append(served.latency_s)
                worst = max(worst, error_ratio(outputs, expected[at % _TEXTS]))
            return latencies, worst

    alone, rest = together(1, work), together(_WORKERS - 1, work)
    return Figures(
        opened_s=float(bench.environment().get("opened_s", 0.0)),
        worst_error_ratio=max(worst for _, worst in (*alone, *rest)),
        first_s=alone[0][0][0],
        first_of_later_workers_s=max(latencies[0] for latencies, _ in rest),
        p50_s=quantile(alone[0][0][1:], 0.5),
    )


def judge(found: Figures) -> list[Line]:
    """Outputs within the roundoff; the first request is a verdict."""
    ratio = found.first_s / found.p50_s
    outputs = OUTPUTS.judged(
        found.worst_error_ratio < ALLOWED_ERROR_RATIO,
        {"error_ratio": found.worst_error_ratio, "allowed_ratio": ALLOWED_ERROR_RATIO},
        f"relative error {found.worst_error_ratio:.3g}, less than {ALLOWED_ERROR_RATIO:g} is allowed",
    )
    is_slow = ratio >= EXPECTED_FIRST_RATIO
    first = FIRST.recorded(
        {
            "opened_s": found.opened_s,
            "first_s": found.first_s,
            "first_of_later_workers_s": found.first_of_later_workers_s,
            "p50_s": found.p50_s,
            "ratio": ratio,
        },
        f"the first request takes {ratio:.1f} times the usual: "
        + (
            "warm every worker up before it is ready" if is_slow else f"less than the {EXPECTED_FIRST_RATIO:g} expected"
        ),
    )
    return [outputs, first]


CHECK = Check(number=1, name="context and warm-up", cap_s=40.0, claims=(OUTPUTS, FIRST), measure=measure, judge=judge)
