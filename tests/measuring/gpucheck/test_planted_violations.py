"""Does a device that cheats turn the line red that is there to see it? One cheat for every must line."""

import dataclasses
import math

import pytest

from perfkit.measuring.gpucheck import closed_loop
from perfkit.measuring.gpucheck.bench import GRAPH, Board, Monitors
from perfkit.measuring.gpucheck.check import Effort
from perfkit.measuring.gpucheck.checks import thread_scan
from perfkit.measuring.gpucheck.line import MUST
from perfkit.measuring.gpucheck.order import CHECKS

LITTLE_EFFORT = Effort(0.05)


@pytest.fixture(autouse=True)
def short_scan(monkeypatch):
    monkeypatch.setattr(thread_scan, "THREADS", (1, 2))


def statuses(bench, check):
    return {line.id: line.status for line in check.judge(check.measure(bench, LITTLE_EFFORT))}


def swapped(bench, name, make):
    """Replace a method of the bench or its device by `make(the old one)`."""
    old = getattr(bench, name)
    setattr(bench, name, make(old))


def wrong_outputs(bench):
    swapped(bench, "encoder", lambda old: lambda *how: lambda ids, work=None: old(*how)(ids) * 1.05)


def stale_clock_reading(bench):
    swapped(bench, "board", lambda old: lambda: dataclasses.replace(old(), sm_clock_hz=345e6))


def stale_anchor(bench):
    swapped(bench.device, "instant_ns", lambda old: lambda event: old(event) + 5_000_000)


def stretched_spans(bench):
    swapped(bench.device, "elapsed_ns", lambda old: lambda start, end: old(start, end) + 10_000_000_000)


def outputs_of_the_request_before(bench):
    def make(old):
        def mlp():
            predict, before = old(), []

            def call(inputs):
                before.append(predict(inputs))
                return before[-2].clone() if len(before) > 1 else before[-1].clone()

            return call

        return mlp

    swapped(bench, "mlp", make)


def no_order_between_streams(bench):
    bench.device.wait = lambda stream, event: None


def all_memory_pageable(bench):
    swapped(bench, "copy", lambda old: lambda nbytes, is_pinned: old(nbytes, False))


def copies_that_take_the_processors(bench):
    def make(old):
        def copy(nbytes, is_pinned):
            work = bench.multiply(0.005 if is_pinned else 0.02)
            return lambda stream, span: bench.device.run(work, None, stream, span)

        return copy

    swapped(bench, "copy", make)


def timed_encoder(seconds_of):
    def plant(bench):
        def encoder(level, sizes=(1,)):
            return lambda ids: bench.device.compute(seconds_of(len(ids)), 1.0)

        bench.encoder = encoder

    return plant


def graph_that_keeps_its_first_inputs(bench):
    def make(old):
        def encoder(level, sizes=(1,)):
            work, first = old(level, sizes), []

            def call(ids):
                first.append(work(ids) + (level == GRAPH))
                return first[0] if first[0].shape == first[-1].shape else first[-1]

            return call

        return encoder

    swapped(bench, "encoder", make)


def high_goes_last(bench):
    swapped(bench.device, "stream", lambda old: lambda priority=0: old(-priority))


def meters_that_stick(bench):
    bench.board = lambda: Board(gpu_util_ratio=1.0, sm_clock_hz=1.98e9)
    bench.monitors = lambda seconds: Monitors(sm_active_ratio=1.0)


def always_spinning(bench):
    swapped(bench, "waiting", lambda old: lambda wait: old("spinning"))


def memory_without_end(bench):
    swapped(bench.device, "buffer", lambda old: lambda nbytes, is_pinned=False: old(min(nbytes, 1 << 20), is_pinned))


def others_suffer(bench):
    def make(old):
        def mlp():
            predict = old()
            return lambda inputs: predict(inputs) if not bench.oom_count() else predict(inputs).fill_(math.nan)

        return mlp

    swapped(bench, "mlp", make)


PLANTED = [
    (wrong_outputs, {"1.outputs"}),
    (stale_clock_reading, {"2.clock"}),
    (stale_anchor, {"3.sum"}),
    (stretched_spans, {"3.spans", "3.sum"}),
    (outputs_of_the_request_before, {"4.mismatches"}),
    (no_order_between_streams, {"4.sanitizer"}),
    (all_memory_pageable, {"5.pinned"}),
    (copies_that_take_the_processors, {"5.overlap"}),
    (timed_encoder(lambda size: 0.0001 if size % 16 else 0.002), {"6.line"}),
    (timed_encoder(lambda size: 0.0002 * size), {"6.gain"}),
    (graph_that_keeps_its_first_inputs, {"7.outputs"}),
    (high_goes_last, {"9.sooner"}),
    (meters_that_stick, {"10.util", "10.monitors"}),
    (always_spinning, {"11.cpu"}),
    (memory_without_end, {"12.caught"}),
    (others_suffer, {"12.unharmed"}),
]
BY_THE_HOST = {5, 8, 9, 10, 11}  # their figures suffer where the host is short of processors
HONEST = [check for check in CHECKS if any(claim.kind == MUST for claim in check.claims) and check.number != 14]


@pytest.mark.parametrize(("plant", "claims"), PLANTED, ids=["+".join(sorted(case[1])) for case in PLANTED])
def test_a_cheat_turns_its_line_red(bench, plant, claims):
    plant(bench)
    check = next(check for check in CHECKS if claims & {each.id for each in check.claims})
    assert {claim for claim, status in statuses(bench, check).items() if status == "fail"} >= claims


def test_a_generator_that_pauses_between_requests_turns_littles_law_red(bench, monkeypatch):
    honest = closed_loop.request

    def pausing(bench, *what):
        served = honest(bench, *what)
        bench.device.clock.sleep_until(bench.device.clock.now_ns() + 2_000_000)
        return served

    monkeypatch.setattr(closed_loop, "request", pausing)
    assert statuses(bench, thread_scan.CHECK)["8.little"] == "fail"


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=check.name, marks=pytest.mark.slow if check.number in BY_THE_HOST else ())
        for check in HONEST
    ],
)
def test_without_a_cheat_none_is_red(bench, check):
    if check.number == 6:  # by the clock of the timeline alone: launching really computes, and this host may be busy
        timed_encoder(lambda size: 0.001 + 0.00016 * size)(bench)
    assert "fail" not in statuses(bench, check).values()


def test_every_must_line_has_its_cheat():
    musts = {claim.id for check in HONEST for claim in check.claims if claim.kind == MUST}
    assert musts == {claim for _, claims in PLANTED for claim in claims} | {"8.little"}
