"""15: what does one thread of pure Python do to workers that wait for the device?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import GRAPH, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closed_loop import run_loop
from perfkit.measuring.gpucheck.line import VERDICT, Claim, Line
from perfkit.units import format_duration, format_percent

LAG = Claim("15.wake_lag", VERDICT, "how much later workers go on beside a thread that computes in Python")
FALL = Claim("15.busy", VERDICT, "how much less the device is used beside it")
_WORKERS = 4
_ROW_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Four workers in a closed loop; the utilisation is the driver's, None where it does not tell."""

    wake_lag_p50_s: float
    wake_lag_p99_s: float
    gpu_util_ratio: float | None
    throughput_rps: float


def measure(bench: Bench, effort: Effort) -> tuple[Row, Row]:
    """Alone, then beside the spinner."""
    alone = _row(bench, effort)
    with _spinner():
        beside = _row(bench, effort)
    return alone, beside


def _row(bench: Bench, effort: Effort) -> Row:
    loop = run_loop(bench, GRAPH, _WORKERS, effort.seconds(_ROW_S))
    return Row(
        gpu_util_ratio=bench.board().gpu_util_ratio,  # of the last moments of the loop
        wake_lag_p50_s=loop.wake_lag_s(0.5),
        wake_lag_p99_s=loop.wake_lag_s(0.99),
        throughput_rps=loop.throughput_rps,
    )


@contextmanager
def _spinner() -> Iterator[None]:
    """A thread that never gives Python's lock up of its own accord."""
    stop = threading.Event()

    def body() -> None:
        while not stop.is_set():
            sum(range(1_000))

    thread = threading.Thread(target=body, name="spinner", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def judge(found: tuple[Row, Row]) -> list[Line]:
    """Both are verdicts."""
    alone, beside = found
    fall = 1.0 - beside.throughput_rps / alone.throughput_rps
    lags = ((alone.wake_lag_p50_s, beside.wake_lag_p50_s), (alone.wake_lag_p99_s, beside.wake_lag_p99_s))
    is_convoy = any(later >= 2 * usual for usual, later in lags)
    return [
        LAG.recorded(
            {
                "alone_p50_s": alone.wake_lag_p50_s,
                "alone_p99_s": alone.wake_lag_p99_s,
                "beside_p50_s": beside.wake_lag_p50_s,
                "beside_p99_s": beside.wake_lag_p99_s,
            },
            f"{_lag_text(beside)} instead of {_lag_text(alone)}: "
            f"{'a convoy behind the lock' if is_convoy else 'no convoy'}",
        ),
        FALL.recorded(
            {
                "throughput_fall_ratio": fall,
                "alone_gpu_util_ratio": alone.gpu_util_ratio,
                "beside_gpu_util_ratio": beside.gpu_util_ratio,
            },
            f"throughput falls by {format_percent(fall)}, utilisation from {_told(alone)} to {_told(beside)}",
        ),
    ]


def _lag_text(row: Row) -> str:
    return f"{format_duration(row.wake_lag_p50_s)} at P50 and {format_duration(row.wake_lag_p99_s)} at P99"


def _told(row: Row) -> str:
    return "not told" if row.gpu_util_ratio is None else format_percent(row.gpu_util_ratio)


CHECK = Check(
    number=15, name="convoy behind Python's lock", cap_s=20.0, claims=(LAG, FALL), measure=measure, judge=judge
)
