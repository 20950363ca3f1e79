"""How far is the reported latency from the one that the service really held its requests for, and from another's?"""

import re
import statistics

import numpy as np
import pytest

from perfkit.measuring.load.loops import ClosedLoop, OpenLoop

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

ROUNDS = 5
MOST_TRIES = 12
MOST_NEIGHBOURS_RATIO = 0.05  # of either core; above it a round shows the neighbours, not the generator
SECONDS = 3
CONCURRENCY = 32
DELAY_US = 10_000
MOST_P50_ERROR_S = 0.0003
MOST_P99_ERROR_S = 0.0015
MOST_P99_OF_WRK = 3
OUTSIDE_DELAY_US, OUTSIDE_CONCURRENCY = 20_000, 8
MOST_APART = {"gap": 0.03, "p50": 0.03, "p99": 0.10}
"""Between perfkit and an outside client: seconds per reply (the throughput), median and tail of the latency."""
STALL_DELAY_US, STALL_EVERY_MS, STALL_MS = 2_000, 2_000, 200
STALL_SECONDS = 4
STALL_RATE_RPS = 500
MOST_STALL_RATIO = 0.10


def calm_rounds(run_round, heading, columns, show):
    """Repeat a round, which returns figures and the neighbours' share, until enough were calm; all are shown."""
    tried = []
    while len(tried) < MOST_TRIES and sum(is_calm for _, is_calm in tried) < ROUNDS:
        *figures, neighbours_ratio = run_round()
        tried.append(((*figures, neighbours_ratio), neighbours_ratio <= MOST_NEIGHBOURS_RATIO))
    rows = [
        (f"round {number}{'' if is_calm else ' (disturbed)'}", [*(f"{x * 1e3:.3f}" for x in cells), f"{share:.0%}"])
        for number, ((*cells, share), is_calm) in enumerate(tried, 1)
    ]
    show(heading, [*columns, "neighbours"], rows)
    calm = [figures[:-1] for figures, is_calm in tried if is_calm]
    if len(calm) < ROUNDS:
        pytest.fail(f"inconclusive: only {len(calm)} of {len(tried)} rounds were calm; run it on an idle machine")
    return list(zip(*calm, strict=True))


def latencies_s(samples):
    answered = samples["status"] == 200
    return (samples["received_ns"] - samples["scheduled_ns"])[answered] / 1e9


def test_error_at_a_fixed_delay(start_target, run_perfkit, run_wrk, show):
    target = start_target(DELAY_US)

    def run_round():
        target.holds()
        wrk, _, percentiles = run_wrk(target, CONCURRENCY, SECONDS)
        held = target.holds()
        wrk_p50_s = percentiles[50] - held["p50_us"] / 1e6
        wrk_p99_s = percentiles[99] - held["p99_us"] / 1e6
        ours, _, samples = run_perfkit(target, ClosedLoop(concurrency=CONCURRENCY), SECONDS)
        held = target.holds()
        p50_s, p99_s = np.percentile(latencies_s(samples), [50, 99])
        errors = p50_s - held["p50_us"] / 1e6, p99_s - held["p99_us"] / 1e6, wrk_p50_s, wrk_p99_s
        return (*errors, max(wrk.neighbours_ratio, ours.neighbours_ratio))

    heading = f"reported minus held, ms, {DELAY_US / 1000:g} ms delay, {CONCURRENCY} users"
    columns = ["perfkit p50", "perfkit p99", "wrk p50", "wrk p99"]
    p50_s, p99_s, _, wrk_p99_s = map(statistics.median, calm_rounds(run_round, heading, columns, show))
    most_p99_s = max(MOST_P99_ERROR_S, MOST_P99_OF_WRK * wrk_p99_s)
    is_good = abs(p50_s) <= MOST_P50_ERROR_S and abs(p99_s) <= most_p99_s
    print(f"  medians {p50_s * 1e3:+.3f} and {p99_s * 1e3:+.3f} ms")
    print(f"  goal: p50 within 0.3 ms, p99 within {most_p99_s * 1e3:.3f} ms: {'pass' if is_good else 'FAIL'}")
    assert is_good


def test_an_outside_client_reports_the_same(start_target, run_perfkit, run_wrk, show):
    target = start_target(OUTSIDE_DELAY_US)

    def run_round():
        wrk, _, percentiles = run_wrk(target, OUTSIDE_CONCURRENCY, SECONDS)
        wrk_gap_s = 1 / float(re.search(r"Requests/sec: +([\d.]+)", wrk.printed)[1])
        ours, report, samples = run_perfkit(target, ClosedLoop(concurrency=OUTSIDE_CONCURRENCY), SECONDS)
        inside = samples["received_ns"] <= report["ended_ns"]
        gap_s = SECONDS / int((inside & (samples["status"] == 200)).sum())
        p50_s, p99_s = np.percentile(latencies_s(samples), [50, 99])
        figures = gap_s, wrk_gap_s, p50_s, percentiles[50], p99_s, percentiles[99]
        return (*figures, max(wrk.neighbours_ratio, ours.neighbours_ratio))

    heading = f"ms per reply, P50 and P99, {OUTSIDE_DELAY_US / 1000:g} ms delay, {OUTSIDE_CONCURRENCY} users"
    columns = ["perfkit gap", "wrk gap", "perfkit p50", "wrk p50", "perfkit p99", "wrk p99"]
    medians = list(map(statistics.median, calm_rounds(run_round, heading, columns, show)))
    apart = {name: medians[2 * place] / medians[2 * place + 1] - 1 for place, name in enumerate(MOST_APART)}
    is_good = all(abs(apart[name]) <= most for name, most in MOST_APART.items())
    print("  apart: " + ", ".join(f"{name} {off:+.2%} (at most {MOST_APART[name]:.0%})" for name, off in apart.items()))
    print(f"  goal: {'pass' if is_good else 'FAIL'}")
    assert is_good


def true_latencies_s(scheduled_ns, holds):
    """What each request had to wait by the service's own log, had it arrived when it was due."""
    hold_ns = holds["p50_us"] * 1000
    latency_ns = np.full(len(scheduled_ns), hold_ns, dtype=float)
    for start_ns, end_ns in holds["stalls_ns"]:
        came_during = (scheduled_ns >= start_ns) & (scheduled_ns <= end_ns)
        latency_ns[came_during] = end_ns - scheduled_ns[came_during] + hold_ns
        due_during = (scheduled_ns < start_ns) & (scheduled_ns + hold_ns > start_ns)
        latency_ns[due_during] = end_ns - scheduled_ns[due_during]
    return latency_ns / 1e9


def test_p99_of_a_service_that_stalls(start_target, run_perfkit, show):
    target = start_target(STALL_DELAY_US, STALL_EVERY_MS, STALL_MS)

    def run_round():
        target.holds()
        opened, report, samples = run_perfkit(target, OpenLoop(rate_rps=STALL_RATE_RPS), STALL_SECONDS)
        true_s = np.percentile(true_latencies_s(samples["scheduled_ns"], target.holds()), 99)
        open_s = np.percentile(latencies_s(samples), 99)
        closed, _, samples = run_perfkit(target, ClosedLoop(concurrency=8), STALL_SECONDS)
        closed_s = np.percentile(latencies_s(samples), 99)
        share = max(opened.neighbours_ratio, closed.neighbours_ratio)
        return true_s, open_s, closed_s, report["lateness_p99_s"], share

    heading = f"P99 in ms, {STALL_MS} ms stall every {STALL_EVERY_MS / 1000:g} s, {STALL_RATE_RPS} req/s"
    columns = ["true", "open loop", "closed loop", "lateness P99"]
    true_s, open_s, closed_s, _ = calm_rounds(run_round, heading, columns, show)
    off = statistics.median(abs(ours / truth - 1) for ours, truth in zip(open_s, true_s, strict=True))
    too_low = statistics.median(truth / theirs for truth, theirs in zip(true_s, closed_s, strict=True))
    print(f"  the closed loop waits with the service, so its P99 is {too_low:.0f} times too low: not a P99 to claim")
    print(f"  open loop off by {off:.1%} (median), goal within 10 %: {'pass' if off <= MOST_STALL_RATIO else 'FAIL'}")
    assert off <= MOST_STALL_RATIO
