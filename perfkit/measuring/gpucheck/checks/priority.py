"""9: how much sooner does a stream of high priority come to its turn, under how much load?"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import worker
from perfkit.units import format_percent

SOONER = Claim("9.sooner", MUST, "a probe of high priority waits no longer than one of normal priority")
SAVING = Claim("9.saving", VERDICT, "seed 003 says -40 %: at which load?")
ALLOWED_RATIO = 1.05
CLAIMED_SAVING_RATIO = 0.40
LOADS = (0.3, 0.6, 0.9)
HIGH = -1
_BACKGROUND = 3  # threads: with one alone, a probe finds no queue to overtake
_CHAIN_S = 2e-3
_PROBE_S = 0.5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Mean latency of the probes on the device at one background load."""

    load_ratio: float
    normal_s: float
    high_s: float

    @property
    def saving_ratio(self) -> float:
        """By how much high priority shortens it."""
        return 1.0 - self.high_s / self.normal_s


def measure(bench: Bench, effort: Effort) -> list[Level]:
    """Probes of both priorities in turn, at odd instants."""
    return [_level(bench, load, effort.count(150, least=20)) for load in LOADS]


def _level(bench: Bench, load: float, probes: int) -> Level:
    rng = random.Random(f"{load}")
    clock = bench.device.clock
    latencies: dict[int, list[float]] = {0: [], HIGH: []}
    with _background(bench, load), worker(bench) as normal, worker(bench, HIGH) as high:
        work = bench.multiply(_PROBE_S)
        for at in range(2 * probes):
            priority, mine = (HIGH, high) if at % 2 else (0, normal)
            latencies[priority].append(mine.call(work).latency_s)
            clock.sleep_until(clock.now_ns() + round(rng.expovariate(1.0) * 1e-3 * NS_PER_S))
    return Level(load_ratio=load, normal_s=fmean(latencies[0]), high_s=fmean(latencies[HIGH]))


@contextmanager
def _background(bench: Bench, load: float) -> Iterator[None]:
    """Threads that together keep the device busy for a share of the time."""
    stop = threading.Event()
    clock = bench.device.clock
    gap_s = _CHAIN_S * _BACKGROUND / load

    def body(number: int) -> None:
        rng = random.Random(number)
        with worker(bench) as mine:
            chain, due_ns = bench.multiply(_CHAIN_S), clock.now_ns()
            while not stop.is_set():
                mine.call(chain)
                due_ns = max(due_ns + round(rng.expovariate(1.0) * gap_s * NS_PER_S), clock.now_ns())
                clock.sleep_until(due_ns)

    threads = [
        threading.Thread(target=body, args=(number,), name=f"background-{number}", daemon=True)
        for number in range(_BACKGROUND)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def judge(found: list[Level]) -> list[Line]:
    """High priority may be at most 5 % worse; the saving is a curve."""
    curve = {
        f"{one.load_ratio:g}": {"normal_s": one.normal_s, "high_s": one.high_s, "saving_ratio": one.saving_ratio}
        for one in found
    }
    worst = max(found, key=lambda one: one.high_s / one.normal_s)
    reached = [one for one in found if one.saving_ratio >= CLAIMED_SAVING_RATIO]
    told = ", ".join(f"{format_percent(one.saving_ratio)} sooner at load {one.load_ratio:g}" for one in found)
    verdict = f"-40 % is reached from load {reached[0].load_ratio:g} on" if reached else "-40 % is not reached"
    return [
        SOONER.judged(
            worst.high_s <= worst.normal_s * ALLOWED_RATIO,
            {"worst_ratio": worst.high_s / worst.normal_s, "load_ratio": worst.load_ratio},
            f"at worst {worst.high_s / worst.normal_s:.2f} of the normal latency (load {worst.load_ratio:g}); "
            f"at most {ALLOWED_RATIO:g} is allowed",
        ),
        SAVING.recorded(curve, f"{told}: {verdict}"),
    ]


CHECK = Check(number=9, name="stream priority", cap_s=25.0, claims=(SOONER, SAVING), measure=measure, judge=judge)
