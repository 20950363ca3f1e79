"""11: what does waiting for the device cost the processor, asleep and spinning?

Eight threads that only wait look like eight busy ones when CUDA spins: the false "CPU bound".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfkit.clock import NS_PER_S, process_cpu_ns
from perfkit.measuring.gpucheck.bench import BLOCKING, SPINNING, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import quantile, together, worker
from perfkit.units import format_duration

CPU = Claim("11.cpu", MUST, "waiting asleep takes at most 0.3 of the processor time of spinning")
LATENCY = Claim("11.latency", VERDICT, "by how much later a sleeping thread goes on")
MOST_CPU_RATIO = 0.3
_WAITERS = 8
_KERNEL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """One way of waiting: processor time of the whole process, wall time, median wake lag."""

    cpu_s: float
    wall_s: float
    wake_lag_s: float


def measure(bench: Bench, effort: Effort) -> dict[str, Waited]:
    """The same kernels under both ways."""
    rounds = effort.count(60, least=10)
    return {wait: _waited(bench.waiting(wait), rounds) for wait in (BLOCKING, SPINNING)}


def _waited(bench: Bench, rounds: int) -> Waited:
    def work(number: int, begin: Callable[[], None]) -> tuple[int, int, list[float]]:
        with worker(bench) as mine:
            spin = bench.spin(_KERNEL_S)
            mine.call(spin)
            begin()
            before = process_cpu_ns(), bench.device.clock.now_ns()
            lags = [(timed.left_ns - timed.ended_ns) / NS_PER_S for timed in (mine.call(spin) for _ in range(rounds))]
            after = process_cpu_ns(), bench.device.clock.now_ns()
            return after[0] - before[0], after[1] - before[1], lags

    parts = together(_WAITERS, work)
    return Waited(
        cpu_s=max(part[0] for part in parts) / NS_PER_S,
        wall_s=max(part[1] for part in parts) / NS_PER_S,
        wake_lag_s=quantile([lag for part in parts for lag in part[2]], 0.5),
    )


def judge(found: dict[str, Waited]) -> list[Line]:
    """Asleep must be cheap; what it costs in latency is a verdict."""
    asleep, spinning = found[BLOCKING], found[SPINNING]
    ratio = asleep.cpu_s / spinning.cpu_s if spinning.cpu_s else float("inf")
    later_s = asleep.wake_lag_s - spinning.wake_lag_s
    return [
        CPU.judged(
            ratio <= MOST_CPU_RATIO,
            {"asleep_cpu_s": asleep.cpu_s, "spinning_cpu_s": spinning.cpu_s, "wall_s": asleep.wall_s, "ratio": ratio},
            f"{format_duration(asleep.cpu_s)} of the processor asleep, {format_duration(spinning.cpu_s)} spinning: "
            f"{ratio:.2f} of it",
        ),
        LATENCY.recorded(
            {"asleep_s": asleep.wake_lag_s, "spinning_s": spinning.wake_lag_s, "later_s": later_s},
            f"a sleeping thread goes on {format_duration(abs(later_s))} {'later' if later_s >= 0 else 'sooner'}",
        ),
    ]


CHECK = Check(number=11, name="waiting", cap_s=20.0, claims=(CPU, LATENCY), measure=measure, judge=judge)
