"""Does each judgement turn with the figures? One pair for every line: what passes or is expected, and the other."""

import dataclasses
from dataclasses import replace

import pytest

from perfkit.measuring.gpucheck.bench import BLOCKING, EAGER, GRAPH, SPINNING, Board, Monitors
from perfkit.measuring.gpucheck.checks import (
    batch_curve,
    convoy,
    copies,
    decoding,
    event_clock,
    first_request,
    graphs,
    meters,
    ordering,
    out_of_memory,
    priority,
    replicas,
    stage_sum,
    stream_safety,
    thread_scan,
    waiting,
)
from perfkit.measuring.gpucheck.order import CHECKS

FIRST = first_request.Figures(
    opened_s=8.0, worst_error_ratio=2e-3, first_s=0.5, first_of_later_workers_s=0.02, p50_s=0.002
)
CLOCK = event_clock.Figures(cycles=49_500_000, event_s=0.025, sm_clock_hz=1.98e9, throttle_mask=0, missing="")
PASSAGE = stage_sum.Passage(
    entered_ns=0,
    left_ns=2_000_000,
    instants_ns=(100_000, 200_000, 300_000, 1_300_000, 1_300_000, 1_400_000),
    spans_ns=(100_000, 1_000_000, 100_000),
)
LATE = replace(PASSAGE, instants_ns=tuple(at + 5_000_000 for at in PASSAGE.instants_ns))
SAFETY = stream_safety.Figures(requests=1600, mismatches=0, worst_error_ratio=1e-6)
ORDER = ordering.Figures(requests=20, reports=[])
COPIES = copies.Figures(pinned_s=0.005, pageable_s=0.02, chain_s=0.005, together_s=0.0055)
CURVE = {size: 0.001 + 0.00016 * size for size in batch_curve.SIZES}
GRAPHS = graphs.Figures(error_ratio=0.0, eager_s={1: 0.0025, 64: 0.011}, graph_s={1: 0.0012, 64: 0.0105})
ROWS = [
    thread_scan.Row(level=level, threads=n, throughput_rps=rps, mean_s=n / rps, little_ratio=1.0, predicted_rps=guess)
    for level, n, rps, guess in (
        (EAGER, 1, 500.0, None), (EAGER, 16, 550.0, 555.0), (GRAPH, 1, 500.0, None), (GRAPH, 16, 1500.0, 1400.0),
    )
]  # fmt: skip
LEVELS = [
    priority.Level(load_ratio=load, normal_s=1.0, high_s=high) for load, high in ((0.3, 0.9), (0.6, 0.7), (0.9, 0.4))
]
METERS = meters.Figures(
    rest=Board(gpu_util_ratio=0.0),
    spinning=Board(gpu_util_ratio=1.0),
    multiplying=Board(gpu_util_ratio=1.0),
    monitors_spinning=Monitors(sm_active_ratio=0.0076),
    monitors_multiplying=Monitors(sm_active_ratio=0.97, sm_occupancy_ratio=0.2),
)
WAITED = {
    BLOCKING: waiting.Waited(cpu_s=0.1, wall_s=1.2, wake_lag_s=60e-6),
    SPINNING: waiting.Waited(cpu_s=8.0, wall_s=1.2, wake_lag_s=5e-6),
}
MEMORY = out_of_memory.Figures(
    error="OutOfDeviceMemory", counted=1, wrong=0, after=400, has_resumed=True, p50_s=0.001, longest_s=0.008
)
REPLICAS = [
    replicas.Row(replicas=n, throughput_rps=rps, held_bytes=held)
    for n, rps, held in ((1, 500.0, 1_000), (2, 700.0, 1_100), (4, 800.0, 1_150))
]
FOUR_TIMES_AND_MORE = replace(REPLICAS[2], throughput_rps=2200.0)
ALONE = convoy.Row(wake_lag_p50_s=1e-4, wake_lag_p99_s=1e-3, gpu_util_ratio=0.9, throughput_rps=800.0)
BESIDE = convoy.Row(wake_lag_p50_s=5e-3, wake_lag_p99_s=13e-3, gpu_util_ratio=0.5, throughput_rps=400.0)
LATE_AT_TIMES = dataclasses.replace(BESIDE, wake_lag_p50_s=4e-5)

MUST = [
    ("1.outputs", first_request, FIRST, replace(FIRST, worst_error_ratio=0.02)),
    ("2.clock", event_clock, CLOCK, replace(CLOCK, sm_clock_hz=0.345e9)),
    ("3.sum", stage_sum, [PASSAGE], [LATE]),
    ("3.spans", stage_sum, [PASSAGE], [replace(PASSAGE, spans_ns=(100_000, 2_200_000, 100_000))]),
    ("4.mismatches", stream_safety, SAFETY, replace(SAFETY, mismatches=1)),
    ("4.sanitizer", ordering, ORDER, replace(ORDER, reports=["read before write"])),
    ("5.pinned", copies, COPIES, replace(COPIES, pageable_s=0.007)),
    ("5.overlap", copies, COPIES, replace(COPIES, together_s=0.0076)),
    ("6.line", batch_curve, {GRAPH: CURVE}, {GRAPH: {size: seconds**3 for size, seconds in CURVE.items()}}),
    ("6.gain", batch_curve, {GRAPH: CURVE}, {GRAPH: {size: 0.0001 + 0.001 * size for size in CURVE}}),
    ("7.outputs", graphs, GRAPHS, replace(GRAPHS, error_ratio=0.5)),
    ("8.little", thread_scan, ROWS, [*ROWS, replace(ROWS[-1], little_ratio=0.9)]),
    ("9.sooner", priority, LEVELS, [*LEVELS, replace(LEVELS[0], high_s=1.2)]),
    ("10.util", meters, METERS, replace(METERS, rest=Board(gpu_util_ratio=0.4))),
    ("10.util", meters, METERS, replace(METERS, spinning=Board(gpu_util_ratio=0.5))),
    ("10.util", meters, METERS, replace(METERS, multiplying=Board(gpu_util_ratio=0.5))),
    ("10.monitors", meters, METERS, replace(METERS, monitors_spinning=Monitors(sm_active_ratio=1.0))),
    ("10.monitors", meters, METERS, replace(METERS, monitors_multiplying=Monitors(sm_active_ratio=0.3))),
    (
        "10.monitors", meters, METERS,
        replace(METERS, monitors_multiplying=Monitors(sm_active_ratio=0.97, sm_occupancy_ratio=0.9)),
    ),
    ("11.cpu", waiting, WAITED, WAITED | {BLOCKING: replace(WAITED[BLOCKING], cpu_s=7.0)}),
    ("12.caught", out_of_memory, MEMORY, replace(MEMORY, error="RuntimeError")),
    ("12.caught", out_of_memory, MEMORY, replace(MEMORY, counted=0)),
    ("12.unharmed", out_of_memory, MEMORY, replace(MEMORY, wrong=1)),
    ("12.unharmed", out_of_memory, MEMORY, replace(MEMORY, has_resumed=False)),
]  # fmt: skip
VERDICTS = [
    ("1.first_request", first_request, FIRST, "warm every worker", replace(FIRST, first_s=0.004), "less than the 5"),
    ("6.knee", batch_curve, {GRAPH: CURVE}, "lies at 32", {GRAPH: {size: 0.001 for size in CURVE}}, "lies at 64"),
    ("7.gain", graphs, GRAPHS, "2.08 times at 1 request (as", replace(GRAPHS, eager_s={1: 0.0012, 64: 0.02}), "(not"),
    ("8.scaling", thread_scan, ROWS, "they scale", [replace(row, throughput_rps=1.0) for row in ROWS], "do not scale"),
    ("8.prediction", thread_scan, ROWS, "within", [*ROWS, replace(ROWS[-1], predicted_rps=3000.0)], "beyond"),
    ("9.saving", priority, LEVELS, "from load 0.9 on", LEVELS[:2], "not reached"),
    ("11.latency", waiting, WAITED, "55.0 µs later", {one: WAITED[SPINNING] for one in WAITED}, "0 s later"),
    ("12.spike", out_of_memory, MEMORY, "8.0 times", replace(MEMORY, longest_s=0.001), "1.0 times"),
    ("13.speedup", replicas, REPLICAS, "not reached", [*REPLICAS, FOUR_TIMES_AND_MORE], "is reached"),
    ("13.memory", replicas, REPLICAS, "15.0 % more", REPLICAS[:1], "0 % more"),
    ("15.wake_lag", convoy, (ALONE, BESIDE), "a convoy", (ALONE, ALONE), "no convoy"),
    ("15.wake_lag", convoy, (ALONE, LATE_AT_TIMES), "a convoy", (ALONE, ALONE), "no"),
    ("15.busy", convoy, (ALONE, BESIDE), "falls by 50.0 %", (ALONE, ALONE), "falls by 0 %"),
]  # fmt: skip


def line(module, figures, claim):
    return next(one for one in module.judge(figures) if one.id == claim)


@pytest.mark.parametrize(("claim", "module", "right", "wrong"), MUST, ids=[case[0] for case in MUST])
def test_a_must_line_passes_and_fails_by_its_figures(claim, module, right, wrong):
    assert (line(module, right, claim).status, line(module, wrong, claim).status) == ("pass", "fail")


@pytest.mark.parametrize(
    ("claim", "module", "one", "says", "other", "says_then"), VERDICTS, ids=[v[0] for v in VERDICTS]
)
def test_a_verdict_is_recorded_whichever_way_it_turns_out(claim, module, one, says, other, says_then):
    found = line(module, one, claim), line(module, other, claim)
    assert [each.status for each in found] == ["recorded", "recorded"]
    assert says in found[0].reason
    assert says_then in found[1].reason


def test_every_line_has_a_pair_here_or_needs_none():
    claims = {claim.id for check in CHECKS for claim in check.claims}
    assert claims - {case[0] for case in (*MUST, *VERDICTS)} == {"14.tokens"}
    assert [each.to_json(0.0)["reason"] for each in decoding.judge(None)] == ["not built"]


def test_what_the_driver_does_not_tell_is_no_failure_and_no_pass():
    silent = Board(missing="NVML 3")
    clock = line(event_clock, replace(CLOCK, sm_clock_hz=None, missing="NVML 3"), "2.clock")
    util = line(meters, replace(METERS, rest=silent, multiplying=silent), "10.util")
    monitors = line(meters, replace(METERS, monitors_spinning=Monitors(missing="NVML 3")), "10.monitors")
    assert [(each.status, "NVML 3" in each.reason) for each in (clock, util, monitors)] == [
        ("skipped", True),
        ("skipped", True),
        ("recorded", True),
    ]
