"""7: does a captured graph compute the same as the operators one by one, and what does it gain?"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import EAGER, GRAPH, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closeness import error_ratio
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import lane, quantile, request

OUTPUTS = Claim("7.outputs", MUST, "a graph gives the outputs of the operators one by one")
GAIN = Claim("7.gain", VERDICT, "a graph's gain at 1 request and at 64")
ALLOWED_ERROR_RATIO = 1e-2  # the same kernels in the same type; libraries may choose others while capturing
EXPECTED_GAIN_RATIO = 1.5
EXPECTED_LARGE_RATIO = 0.15
SIZES = (1, 64)
_WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Median latency in the thread by level and size, and the largest difference between the levels."""

    error_ratio: float
    eager_s: dict[int, float]
    graph_s: dict[int, float]


def measure(bench: Bench, effort: Effort) -> Figures:
    """The same batches at both levels."""
    rounds = effort.count(40)
    seconds: dict[str, dict[int, float]] = {EAGER: {}, GRAPH: {}}
    worst = 0.0
    for size in SIZES:
        batch, outputs = bench.texts(size, seed=size), {}
        for level in (EAGER, GRAPH):
            with lane(bench, f"graph-{level}") as mine:
                encoder = bench.encoder(level, SIZES)
                for _ in range(_WARM_UP):
                    outputs[level], _ = request(bench, mine, encoder, batch)
                served = [request(bench, mine, encoder, batch)[1] for _ in range(rounds)]
            seconds[level][size] = quantile([one.latency_s - one.wake_lag_s for one in served], 0.5)
        worst = max(worst, error_ratio(outputs[GRAPH], outputs[EAGER]))
    return Figures(error_ratio=worst, eager_s=seconds[EAGER], graph_s=seconds[GRAPH])


def judge(found: Figures) -> list[Line]:
    """Equal outputs; the gains are verdicts."""
    small, large = (found.eager_s[size] / found.graph_s[size] for size in SIZES)
    is_launch_bound = small >= EXPECTED_GAIN_RATIO
    is_close = abs(large - 1.0) <= EXPECTED_LARGE_RATIO
    return [
        OUTPUTS.judged(
            found.error_ratio <= ALLOWED_ERROR_RATIO,
            {"error_ratio": found.error_ratio, "allowed_ratio": ALLOWED_ERROR_RATIO},
            f"relative difference {found.error_ratio:.3g}, at most {ALLOWED_ERROR_RATIO:g} is allowed",
        ),
        GAIN.recorded(
            {"eager_s": found.eager_s, "graph_s": found.graph_s, "gain_at_1_ratio": small, "gain_at_64_ratio": large},
            f"{small:.2f} times at 1 request ({'as' if is_launch_bound else 'not the'} 1.5 and more expected), "
            f"{large:.2f} times at 64 ({'as' if is_close else 'not the'} 15 % at most expected)",
        ),
    ]


CHECK = Check(number=7, name="CUDA graphs", cap_s=25.0, claims=(OUTPUTS, GAIN), measure=measure, judge=judge)
