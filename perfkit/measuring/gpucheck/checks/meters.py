"""10: do the meters tell what is known: a device at rest, one block that spins, matrix products that fill it?

Utilisation is the share of time in which anything ran: the one block shows as fully busy. How many
multiprocessors work is told by the performance monitors alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench, Board, Monitors, Work
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line
from perfkit.measuring.gpucheck.worker import worker
from perfkit.units import format_percent

UTIL = Claim("10.util", MUST, "utilisation at rest, under one spinning block, under matrix products")
MONITORS = Claim("10.monitors", MUST, "SM activity under one spinning block, under matrix products")
MOST_AT_REST = 0.10
LEAST_BUSY = 0.90
MOST_ACTIVE_SPINNING = 0.03
LEAST_ACTIVE_MULTIPLYING = 0.80
OCCUPANCY = (0.05, 0.60)
_REST_S = 1.5  # the driver's window is a second at most
_BUSY_S = 1.2
_MONITORS_S = 0.2
_PIECE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The meters in the three states; no monitors at rest."""

    rest: Board
    spinning: Board
    multiplying: Board
    monitors_spinning: Monitors
    monitors_multiplying: Monitors


def measure(bench: Bench, effort: Effort) -> Figures:
    """Each state lasts as long as the driver's window, then the meters are read."""
    clock = bench.device.clock
    clock.sleep_until(clock.now_ns() + round(effort.seconds(_REST_S, least=0.5) * NS_PER_S))
    rest = bench.board()
    boards, monitors = {}, {}
    for name, work in (("spin", bench.spin), ("multiply", bench.multiply)):
        with _busy(bench, work):
            clock.sleep_until(clock.now_ns() + round(effort.seconds(_BUSY_S, least=0.5) * NS_PER_S))
            boards[name] = bench.board()
            monitors[name] = bench.monitors(_MONITORS_S)
    return Figures(
        rest=rest,
        spinning=boards["spin"],
        multiplying=boards["multiply"],
        monitors_spinning=monitors["spin"],
        monitors_multiplying=monitors["multiply"],
    )


@contextmanager
def _busy(bench: Bench, kind: Callable[[float], Work]) -> Iterator[None]:
    """A thread that always has the next piece in the queue before it waits for the one that runs."""
    stop = threading.Event()

    def body() -> None:
        with worker(bench) as mine:
            device, work = bench.device, kind(_PIECE_S)
            running, queued = mine.new_span(), mine.new_span()
            device.run(work, None, mine.stream, running)
            while not stop.is_set():
                device.run(work, None, mine.stream, queued)
                device.synchronize(running.ended)
                running, queued = queued, running
            device.synchronize(running.ended)

    thread = threading.Thread(target=body, name="busy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def judge(found: Figures) -> list[Line]:
    """Known answers; what the driver does not tell is no failure."""
    return [_util(found), _monitors(found)]


def _util(found: Figures) -> Line:
    rest, spin, multiply = (one.gpu_util_ratio for one in (found.rest, found.spinning, found.multiplying))
    if rest is None or spin is None or multiply is None:
        return UTIL.skipped(f"the driver does not tell the utilisation: {found.multiplying.missing}")
    return UTIL.judged(
        rest <= MOST_AT_REST and spin >= LEAST_BUSY and multiply >= LEAST_BUSY,
        {"rest_ratio": rest, "spinning_ratio": spin, "multiplying_ratio": multiply},
        f"{format_percent(rest)} at rest (at most 10 %), {format_percent(spin)} under one block and "
        f"{format_percent(multiply)} under matrix products (at least 90 %)",
    )


def _monitors(found: Figures) -> Line:
    spin, multiply = found.monitors_spinning, found.monitors_multiplying
    if spin.sm_active_ratio is None or multiply.sm_active_ratio is None:
        return MONITORS.recorded({}, f"the monitors do not work here: {spin.missing or multiply.missing}")
    occupancy = multiply.sm_occupancy_ratio
    is_met = spin.sm_active_ratio < MOST_ACTIVE_SPINNING and multiply.sm_active_ratio > LEAST_ACTIVE_MULTIPLYING
    told = "not told"
    if occupancy is not None:
        is_met = is_met and OCCUPANCY[0] <= occupancy <= OCCUPANCY[1]
        told = f"{format_percent(occupancy)} (5 to 60 %)"
    return MONITORS.judged(
        is_met,
        {
            "spinning_sm_active_ratio": spin.sm_active_ratio,
            "multiplying_sm_active_ratio": multiply.sm_active_ratio,
            "multiplying_occupancy_ratio": occupancy,
        },
        f"{format_percent(spin.sm_active_ratio)} of the multiprocessors under one block (below 3 %), "
        f"{format_percent(multiply.sm_active_ratio)} under matrix products (above 80 %), occupancy {told}",
    )


CHECK = Check(number=10, name="meters", cap_s=25.0, claims=(UTIL, MONITORS), measure=measure, judge=judge)
