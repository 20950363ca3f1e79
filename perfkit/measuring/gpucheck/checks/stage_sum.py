"""3: do the stages of a request, told by device events, add up to what its thread waited?

The instants are taken as the device gives them, before a lane would put them into the ledger's order.
A stage cannot be negative: where the device's clock is mapped wrongly, stages lose or gain, and the sum
is no longer the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench, Work
from perfkit.measuring.gpucheck.check import Check, Effort
from perfkit.measuring.gpucheck.line import MUST, Claim, Line
from perfkit.measuring.gpucheck.worker import Worker, quantile, together, worker
from perfkit.serving.devices.device import Buffer, Span
from perfkit.serving.devices.lane import Batch
from perfkit.units import format_duration

SUM = Claim("3.sum", MUST, "the stages add up to the whole, at the 95th percentile")
SPANS = Claim("3.spans", MUST, "no event span is longer than the time its thread waited")
ALLOWED_RATIO = 0.05
ALLOWED_S = 0.3e-3
ALLOWED_SPAN_S = 0.1e-3
_THREADS = 4
_WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One request: the host's instants around it, the device's in between, and the events' own durations."""

    entered_ns: int
    left_ns: int
    instants_ns: tuple[int, ...]  # start and end of copy in, compute, copy out
    spans_ns: tuple[int, ...]

    @property
    def whole_s(self) -> float:
        """As its thread saw it."""
        return (self.left_ns - self.entered_ns) / NS_PER_S

    @property
    def stages_s(self) -> float:
        """Event spans and the gaps between them; a gap of negative length is none."""
        marks = (self.entered_ns, *self.instants_ns, self.left_ns)
        gaps = [after - before for before, after in list(pairwise(marks))[::2]]
        return (sum(self.spans_ns) + sum(max(0, gap) for gap in gaps)) / NS_PER_S

    @property
    def excess_s(self) -> float:
        """By how much the longest event span exceeds the whole."""
        return max(self.spans_ns) / NS_PER_S - self.whole_s


def measure(bench: Bench, effort: Effort) -> list[Passage]:
    """Every thread with streams and a pinned buffer of its own."""
    rounds = effort.count(100)

    def work(number: int, begin: Callable[[], None]) -> list[Passage]:
        with worker(bench) as mine:
            predict = bench.mlp()
            spans = (mine.new_span(), mine.new_span(), mine.new_span())
            staging = bench.device.buffer(bench.mlp_batch(0).nbytes, is_pinned=True)
            for at in range(_WARM_UP):
                _pass(mine, predict, bench.mlp_batch(at), spans, staging)
            begin()
            batches = [bench.mlp_batch(number * rounds + at) for at in range(rounds)]
            passages = [_pass(mine, predict, batch, spans, staging) for batch in batches]
            bench.device.free(staging)
            return passages

    return [passage for passages in together(_THREADS, work) for passage in passages]


def _pass(mine: Worker, predict: Work, batch: Batch, spans: tuple[Span, ...], staging: Buffer) -> Passage:
    device = mine.device
    entered_ns = device.clock.now_ns()
    inputs = device.copy_in(batch.inputs, batch.nbytes, mine.stream, spans[0], staging)
    outputs = device.run(predict, inputs, mine.stream, spans[1])
    device.copy_out(outputs, mine.stream, spans[2])
    device.synchronize(spans[2].ended)
    left_ns = device.clock.now_ns()
    return Passage(
        entered_ns=entered_ns,
        left_ns=left_ns,
        instants_ns=tuple(device.instant_ns(event) for span in spans for event in (span.started, span.ended)),
        spans_ns=tuple(device.elapsed_ns(span.started, span.ended) for span in spans),
    )


def judge(found: list[Passage]) -> list[Line]:
    """Off by at most 5 % or 0.3 ms, whichever is more, for 95 of 100."""
    over = [abs(one.whole_s - one.stages_s) / max(ALLOWED_RATIO * one.whole_s, ALLOWED_S) for one in found]
    p95 = quantile(over, 0.95)
    off_s = quantile([abs(one.whole_s - one.stages_s) for one in found], 0.95)
    excess_s = max(one.excess_s for one in found)
    return [
        SUM.judged(
            p95 <= 1.0,
            {"requests": len(found), "off_p95_s": off_s, "off_p95_of_allowed_ratio": p95},
            f"{format_duration(off_s)} apart at the 95th percentile of {len(found)} requests, "
            f"{p95:.2f} of what is allowed (5 % or 0.3 ms)",
        ),
        SPANS.judged(
            excess_s <= ALLOWED_SPAN_S,
            {"excess_s": excess_s},
            f"the longest span exceeds its request by {format_duration(excess_s)}; 0.1 ms is allowed",
        ),
    ]


CHECK = Check(number=3, name="stage sum", cap_s=20.0, claims=(SUM, SPANS), measure=measure, judge=judge)
