"""How far is the reported latency from the one that the service really held its requests for?"""

import statistics

import numpy as np
import pytest

from perfkit.measuring.load.loops import ClosedLoop, OpenLoop

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

ROUNDS = 5
SECONDS = 3
CONCURRENCY = 32
DELAY_US = 10_000
MOST_P50_ERROR_S = 0.0003
MOST_P99_ERROR_S = 0.0015
MOST_P99_OF_WRK = 3
STALL_DELAY_US, STALL_EVERY_MS, STALL_MS = 2_000, 2_000, 200
STALL_SECONDS = 4
STALL_RATE_RPS = 500
MOST_STALL_RATIO = 0.10


def latencies_s(samples):
    answered = samples["status"] == 200
    return (samples["received_ns"] - samples["scheduled_ns"])[answered] / 1e9


def test_error_at_a_fixed_delay(start_target, run_perfkit, run_wrk, show):
    target = start_target(DELAY_US)
    errors = {"perfkit p50": [], "perfkit p99": [], "wrk p50": [], "wrk p99": []}
    for _ in range(ROUNDS):
        target.holds()
        _, _, percentiles = run_wrk(target, CONCURRENCY, SECONDS)
        held = target.holds()
        errors["wrk p50"].append(percentiles[50] - held["p50_us"] / 1e6)
        errors["wrk p99"].append(percentiles[99] - held["p99_us"] / 1e6)
        _, _, samples = run_perfkit(target, ClosedLoop(concurrency=CONCURRENCY), SECONDS)
        held = target.holds()
        p50_s, p99_s = np.percentile(latencies_s(samples), [50, 99])
        errors["perfkit p50"].append(p50_s - held["p50_us"] / 1e6)
        errors["perfkit p99"].append(p99_s - held["p99_us"] / 1e6)
    median_s = {name: statistics.median(values) for name, values in errors.items()}
    rows = [(name, [f"{value * 1e3:+.3f}" for value in [*values, median_s[name]]]) for name, values in errors.items()]
    rounds = [f"round {number}" for number in range(1, ROUNDS + 1)]
    show(f"reported minus held, ms, {DELAY_US / 1000:g} ms delay, {CONCURRENCY} users", [*rounds, "median"], rows)
    most_p99_s = max(MOST_P99_ERROR_S, MOST_P99_OF_WRK * median_s["wrk p99"])
    is_good = abs(median_s["perfkit p50"]) <= MOST_P50_ERROR_S and abs(median_s["perfkit p99"]) <= most_p99_s
    print(f"  goal: p50 within 0.3 ms, p99 within {most_p99_s * 1e3:.3f} ms: {'pass' if is_good else 'FAIL'}")
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
    rows, ratios = [], []
    for number in range(1, ROUNDS + 1):
        target.holds()
        _, report, samples = run_perfkit(target, OpenLoop(rate_rps=STALL_RATE_RPS), STALL_SECONDS)
        true_s = np.percentile(true_latencies_s(samples["scheduled_ns"], target.holds()), 99)
        open_s = np.percentile(latencies_s(samples), 99)
        _, _, samples = run_perfkit(target, ClosedLoop(concurrency=8), STALL_SECONDS)
        closed_s = np.percentile(latencies_s(samples), 99)
        ratios.append(open_s / true_s - 1)
        cells = [true_s, open_s, closed_s, report["lateness_p99_s"]]
        rows.append((f"round {number}", [f"{value * 1e3:.2f}" for value in cells]))
    columns = ["true", "open loop", "closed loop", "lateness P99"]
    show(f"P99 in ms, {STALL_MS} ms stall every {STALL_EVERY_MS / 1000:g} s, {STALL_RATE_RPS} req/s", columns, rows)
    print("  the closed loop waits with the service and does not see what its users would have: not a P99 to claim")
    off = statistics.median(abs(ratio) for ratio in ratios)
    print(f"  open loop off by {off:.1%} (median), goal within 10 %: {'pass' if off <= MOST_STALL_RATIO else 'FAIL'}")
    assert off <= MOST_STALL_RATIO
