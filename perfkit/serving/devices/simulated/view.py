"""What would the driver of a real card report about the simulated one?

The card's utilisation is the share of the last sixth of a second in which at least one kernel ran:
100 % does not mean that the card is full. Multiprocessor activity weighs each kernel by the share
of the card it keeps busy. Power follows that activity in a straight line from rest to peak, as the
mean of the last second (so the H200's driver reports it); the clock is at boost while anything ran in
the last sixth of a second, else at rest. No temperature, no throttling. Every figure is simulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.simulated.parts import BoardParts

WINDOW_NS = NS_PER_S // 6
POWER_WINDOW_NS = NS_PER_S
_HZ_PER_MHZ = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """How busy the multiprocessors are and were; totals count from the device's start."""

    time_ns: int
    since_start_s: float
    utilisation_ratio: float
    sm_active_ratio: float
    sm_active_of_late_ratio: float  # over the window of the power meter
    sm_active_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardReading:
    """What the board's meters show at one instant; None = not modelled by the preset. All of it is simulated."""

    time_ns: int
    gpu_util_ratio: float
    sm_active_ratio: float
    memory_used_bytes: int
    memory_total_bytes: int
    sms: int | None
    power_w: float | None
    energy_j: float | None
    sm_clock_mhz: int | None


def read_board(board: BoardParts, activity: Activity, memory_used_bytes: int, memory_total_bytes: int) -> BoardReading:
    """The meters of a board, given how busy it is and was."""
    power_w = energy_j = None
    if board.idle_w is not None and board.peak_w is not None:
        swing_w = board.peak_w - board.idle_w
        power_w = board.idle_w + swing_w * activity.sm_active_of_late_ratio
        energy_j = board.idle_w * activity.since_start_s + swing_w * activity.sm_active_s
    return BoardReading(
        time_ns=activity.time_ns,
        gpu_util_ratio=activity.utilisation_ratio,
        sm_active_ratio=activity.sm_active_ratio,
        memory_used_bytes=memory_used_bytes,
        memory_total_bytes=memory_total_bytes,
        sms=board.sms,
        power_w=power_w,
        energy_j=energy_j,
        sm_clock_mhz=board.boost_mhz if activity.utilisation_ratio else board.idle_mhz,
    )


def meters(reading: BoardReading) -> dict[str, float]:
    """The meters that the preset models, in base units; the others are left out. (Utilisation stands elsewhere.)"""
    shown = {
        "memory_used_bytes": reading.memory_used_bytes,
        "memory_total_bytes": reading.memory_total_bytes,
        "power_w": reading.power_w,
        "energy_j": reading.energy_j,
        "sm_clock_hz": None if reading.sm_clock_mhz is None else reading.sm_clock_mhz * _HZ_PER_MHZ,
    }
    return {name: float(value) for name, value in shown.items() if value is not None}


def covered_ratio(intervals: Iterable[tuple[int, int]], from_ns: int, until_ns: int) -> float:
    """Share of a window that intervals without overlap cover."""
    covered_ns = sum(max(0, min(ended, until_ns) - max(started, from_ns)) for started, ended in intervals)
    return covered_ns / (until_ns - from_ns)


def utilisation_ratio(intervals: Iterable[tuple[int, int]], now_ns: int) -> float:
    """Share of the window before an instant with at least one kernel."""
    return covered_ratio(intervals, now_ns - WINDOW_NS, now_ns)


def weighed_ratio(runs: Iterable[tuple[int, int, float]], from_ns: int, until_ns: int) -> float:
    """Mean share of the multiprocessors that kernels kept active in a window: each run with its share."""
    active_ns = sum(share * max(0, min(ended, until_ns) - max(started, from_ns)) for started, ended, share in runs)
    return active_ns / (until_ns - from_ns)
