"""13: what do 1, 2 and 4 replicas on one device gain, and what memory do they take?

Replicas as they are on one device: shared weights, each with a stream, a graph and buffers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.measuring.gpucheck.bench import GRAPH, Bench
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.closed_loop import run_loop
from perfkit.measuring.gpucheck.line import VERDICT, Claim, Line
from perfkit.units import format_percent

SPEEDUP = Claim("13.speedup", VERDICT, "seed 003 says 4.2 times with replicas: what does one device give?")
MEMORY = Claim("13.memory", VERDICT, "memory of further replicas")
CLAIMED_RATIO = 4.2
REPLICAS = (1, 2, 4)
_ROW_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of replicas, one request in flight on each."""

    replicas: int
    throughput_rps: float
    held_bytes: int


def measure(bench: Bench, effort: Effort) -> list[Row]:
    """From one replica up, so that memory only grows."""
    rows = []
    for replicas in REPLICAS:
        loop = run_loop(bench, GRAPH, replicas, effort.seconds(_ROW_S))
        rows.append(Row(replicas=replicas, throughput_rps=loop.throughput_rps, held_bytes=bench.held_bytes()))
    return rows


def judge(found: list[Row]) -> list[Line]:
    """Both are verdicts."""
    first, last = found[0], found[-1]
    gains = {row.replicas: row.throughput_rps / first.throughput_rps for row in found}
    most = max(gains.values())
    grown = (last.held_bytes - first.held_bytes) / first.held_bytes if first.held_bytes else 0.0
    return [
        SPEEDUP.recorded(
            {"throughput_rps": {row.replicas: row.throughput_rps for row in found}, "gain_ratio": gains},
            f"at most {most:.2f} times: {CLAIMED_RATIO:g} times is "
            f"{'reached' if most >= CLAIMED_RATIO else 'not reached by replicas on one device alone'}",
        ),
        MEMORY.recorded(
            {"held_bytes": {row.replicas: row.held_bytes for row in found}, "grown_ratio": grown},
            f"{last.replicas} replicas hold {format_percent(grown)} more than one",
        ),
    ]


CHECK = Check(number=13, name="replicas", cap_s=25.0, claims=(SPEEDUP, MEMORY), measure=measure, judge=judge)
