"""2: does an event's time agree with the clock of the multiprocessors, which a kernel counts by itself?"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line
from perfkit.measuring.gpucheck.worker import quantile, worker
from perfkit.units import format_duration, format_percent

CLOCK = Claim("2.clock", MUST, "an event's time is the kernel's cycles by the SM clock")
ALLOWED_RATIO = 0.05
_SPIN_S = 0.025
_HEAT_S = 1.0  # an idle clock is a fifth of the loaded one
_CHAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Median event time of a kernel of so many cycles, and the clock that the driver told meanwhile."""

    cycles: int
    event_s: float
    sm_clock_hz: float | None
    throttle_mask: int | None
    missing: str


def measure(bench: Bench, effort: Effort) -> Figures:
    """Heat the device with matrix products, then time the kernel between two looks at the clock."""
    with worker(bench) as mine:
        heat = bench.multiply(_CHAIN_S)
        until_ns = bench.device.clock.now_ns() + round(effort.seconds(_HEAT_S) * NS_PER_S)
        while bench.device.clock.now_ns() < until_ns:
            mine.call(heat)
        spin = bench.spin(_SPIN_S)
        looks, times_s = [bench.board()], []
        for _ in range(effort.count(7, least=3)):
            times_s.append(mine.call(spin).device_s)
            looks.append(bench.board())
    clocks = [look.sm_clock_hz for look in looks if look.sm_clock_hz is not None]
    return Figures(
        cycles=bench.spin_cycles(_SPIN_S),
        event_s=quantile(times_s, 0.5),
        sm_clock_hz=quantile(clocks, 0.5) if clocks else None,
        throttle_mask=looks[-1].throttle_mask,
        missing=looks[-1].missing,
    )


def judge(found: Figures) -> list[Line]:
    """Within 5 %; without a clock from the driver there is nothing to hold it against."""
    if found.sm_clock_hz is None:
        return [CLOCK.skipped(f"the driver does not tell the SM clock: {found.missing}")]
    expected_s = found.cycles / found.sm_clock_hz
    off_ratio = abs(found.event_s / expected_s - 1.0)
    figures = {
        "cycles": found.cycles,
        "sm_clock_hz": found.sm_clock_hz,
        "throttle_mask": found.throttle_mask,
        "event_s": found.event_s,
        "expected_s": expected_s,
        "off_ratio": off_ratio,
    }
    reason = (
        f"events say {format_duration(found.event_s)}, cycles by the clock {format_duration(expected_s)}: "
        f"{format_percent(off_ratio)} apart"
    )
    return [CLOCK.judged(off_ratio <= ALLOWED_RATIO, figures, f"{reason}, {format_percent(ALLOWED_RATIO)} is allowed")]


CHECK = Check(number=2, name="event clock", cap_s=15.0, claims=(CLOCK,), measure=measure, judge=judge)
