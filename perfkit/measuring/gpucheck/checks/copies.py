"""5: what does pinned memory gain, and does a copy run beside computing?"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line
from perfkit.measuring.gpucheck.worker import Worker, quantile, worker
from perfkit.units import format_bytes

PINNED = Claim("5.pinned", MUST, "copies from pinned memory are faster than from pageable memory")
OVERLAP = Claim("5.overlap", MUST, "a pinned copy runs beside a chain of matrix products")
LEAST_GAIN_RATIO = 1.5
MOST_OF_SUM_RATIO = 0.75  # 0.5 = perfect, 1 = one after the other
NBYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Medians, in seconds of the device."""

    pinned_s: float
    pageable_s: float
    chain_s: float
    together_s: float


def measure(bench: Bench, effort: Effort) -> Figures:
    """The chain is made as long as the pinned copy."""
    rounds = effort.count(7, least=3)
    pinned, pageable = bench.copy(NBYTES, True), bench.copy(NBYTES, False)
    with worker(bench) as copying, worker(bench) as computing:

        def copy_s(is_pinned: bool) -> float:
            (pinned if is_pinned else pageable)(copying.stream, copying.span)
            copying.device.synchronize(copying.span.ended)
            return copying.device.elapsed_ns(copying.span.started, copying.span.ended) / NS_PER_S

        copy_s(True), copy_s(False)
        pinned_s = quantile([copy_s(True) for _ in range(rounds)], 0.5)
        pageable_s = quantile([copy_s(False) for _ in range(rounds)], 0.5)
        chain = bench.multiply(pinned_s)
        computing.call(chain)
        chain_s = quantile([computing.call(chain).device_s for _ in range(rounds)], 0.5)

        def both_s() -> float:
            computing.start(chain)
            pinned(copying.stream, copying.span)
            return _covered_s(copying, computing)

        both_s()
        return Figures(
            pinned_s=pinned_s,
            pageable_s=pageable_s,
            chain_s=chain_s,
            together_s=quantile([both_s() for _ in range(rounds)], 0.5),
        )


def _covered_s(*workers: Worker) -> float:
    """From the first start to the last end."""
    for one in workers:
        one.device.synchronize(one.span.ended)
    starts = [one.device.instant_ns(one.span.started) for one in workers]
    ends = [one.device.instant_ns(one.span.ended) for one in workers]
    return (max(ends) - min(starts)) / NS_PER_S


def judge(found: Figures) -> list[Line]:
    """Pinned at least 1.5 times as fast; together at most three quarters of the sum."""
    gain = found.pageable_s / found.pinned_s
    of_sum = found.together_s / (found.pinned_s + found.chain_s)
    pinned_rate, pageable_rate = NBYTES / found.pinned_s, NBYTES / found.pageable_s
    return [
        PINNED.judged(
            gain >= LEAST_GAIN_RATIO,
            {"pinned_bytes_per_s": pinned_rate, "pageable_bytes_per_s": pageable_rate, "gain_ratio": gain},
            f"pinned {format_bytes(pinned_rate)}/s, pageable {format_bytes(pageable_rate)}/s: {gain:.2f} times, "
            f"at least {LEAST_GAIN_RATIO:g} is needed",
        ),
        OVERLAP.judged(
            of_sum <= MOST_OF_SUM_RATIO,
            {
                "copy_s": found.pinned_s,
                "chain_s": found.chain_s,
                "together_s": found.together_s,
                "of_sum_ratio": of_sum,
            },
            f"together they take {of_sum:.2f} of their sum, at most {MOST_OF_SUM_RATIO:g} is allowed (0.5 = perfect)",
        ),
    ]


CHECK = Check(number=5, name="copies", cap_s=20.0, claims=(PINNED, OVERLAP), measure=measure, judge=judge)
