"""12: does one request for far too much memory leave the others unharmed?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closeness import error_ratio
from perfkit.measuring.gpucheck.line import MUST, VERDICT, Claim, Line
from perfkit.measuring.gpucheck.worker import lane, quantile, request, together
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.devices.lane import Lane

CAUGHT = Claim("12.caught", MUST, "the refusal arrives as an error of its own and is counted once")
UNHARMED = Claim("12.unharmed", MUST, "the others get right outputs all along, and the service goes on")
SPIKE = Claim("12.spike", VERDICT, "by how much the others are held up")
NBYTES = 200 << 30
ALLOWED_ERROR_RATIO = 1e-3
_OTHERS = 4
_BEFORE_S = 0.05  # the others are at full speed by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """`wrong` outputs and latencies are the others'; `after` counts their requests since the refusal."""

    error: str
    counted: int
    wrong: int
    after: int
    has_resumed: bool
    p50_s: float
    longest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """One request of the others."""

    left_ns: int
    latency_s: float
    error_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What came of the demand."""

    error: str
    asked_ns: int
    has_resumed: bool


class _Seat:
    """One thread's lane, with one request and its right outputs."""

    def __init__(self, bench: Bench, through: Lane, number: int) -> None:
        self._bench, self._lane = bench, through
        self._predict, self._batch = bench.mlp(), bench.mlp_batch(number)
        self._right = bench.mlp_expected([self._batch])[0]

    def serve(self) -> _Served:
        """One request."""
        outputs, one = request(self._bench, self._lane, self._predict, self._batch)
        return _Served(left_ns=one.left_ns, latency_s=one.latency_s, error_ratio=error_ratio(outputs, self._right))


def measure(bench: Bench, effort: Effort) -> Figures:
    """One thread asks while four serve; then it serves a request itself."""
    rounds = effort.count(100, least=20)
    before = bench.oom_count()
    asked = threading.Event()

    def work(number: int, begin: Callable[[], None]) -> _Asked | list[_Served]:
        with lane(bench, f"memory-{number}") as mine:
            seat = _Seat(bench, mine, number)
            seat.serve()
            begin()
            return _asking(bench, seat, asked) if number == 0 else _serving(seat, asked, rounds)

    parts = together(1 + _OTHERS, work)
    refused = next(part for part in parts if isinstance(part, _Asked))
    others = [one for part in parts if not isinstance(part, _Asked) for one in part]
    return Figures(
        error=refused.error,
        counted=bench.oom_count() - before,
        wrong=sum(one.error_ratio > ALLOWED_ERROR_RATIO for one in others),
        after=sum(one.left_ns > refused.asked_ns for one in others),
        has_resumed=refused.has_resumed,
        p50_s=quantile([one.latency_s for one in others], 0.5),
        longest_s=max(one.latency_s for one in others),
    )


def _asking(bench: Bench, seat: _Seat, asked: threading.Event) -> _Asked:
    clock = bench.device.clock
    clock.sleep_until(clock.now_ns() + round(_BEFORE_S * NS_PER_S))
    try:
        error = _ask(bench)
        asked_ns = clock.now_ns()
    finally:
        asked.set()
    return _Asked(error=error, asked_ns=asked_ns, has_resumed=seat.serve().error_ratio <= ALLOWED_ERROR_RATIO)


def _serving(seat: _Seat, asked: threading.Event, rounds: int) -> list[_Served]:
    """All along, and so many requests more once the other has asked."""
    served: list[_Served] = []
    after = 0
    while after < rounds:
        after += asked.is_set()
        served.append(seat.serve())
    return served


def _ask(bench: Bench) -> str:
    """What came of the demand: the name of the error, or nothing."""
    try:
        bench.device.free(bench.device.buffer(NBYTES))
    except OutOfDeviceMemory:
        return OutOfDeviceMemory.__name__
    except Exception as error:  # whatever else comes is what this check is there to see
        return type(error).__name__
    return ""


def judge(found: Figures) -> list[Line]:
    """Caught, counted, and nobody else harmed."""
    is_caught = found.error == OutOfDeviceMemory.__name__ and found.counted == 1
    spike = found.longest_s / found.p50_s
    return [
        CAUGHT.judged(
            is_caught,
            {"asked_bytes": NBYTES, "error": found.error, "counted": found.counted},
            f"{found.error or 'no error'} came, the allocator counted {found.counted} refusals (1 is right)",
        ),
        UNHARMED.judged(
            found.wrong == 0 and found.after > 0 and found.has_resumed,
            {"wrong": found.wrong, "after": found.after, "has_resumed": found.has_resumed},
            f"{found.wrong} wrong outputs; {found.after} requests of the others after the refusal; "
            f"the refused worker {'serves again' if found.has_resumed else 'does not serve again'}",
        ),
        SPIKE.recorded(
            {"p50_s": found.p50_s, "longest_s": found.longest_s, "ratio": spike},
            f"the others' longest request took {spike:.1f} times the usual; a refusal gives their cache back first",
        ),
    ]


CHECK = Check(
    number=12, name="out of memory", cap_s=20.0, claims=(CAUGHT, UNHARMED, SPIKE), measure=measure, judge=judge
)
