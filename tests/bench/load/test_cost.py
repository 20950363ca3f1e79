"""How much CPU does a request cost the generator, beside wrk and locust? Ratios of interleaved runs."""

import statistics

import pytest

from perfkit.measuring.load.loops import ClosedLoop

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

ROUNDS = 5
SECONDS = 3
CONCURRENCY = 32
MOST_OF_WRK = 2.5
MOST_OF_LOCUST = 0.15


def test_cpu_per_request_beside_wrk(start_target, run_perfkit, run_wrk, show):
    target = start_target(0)
    ours_us, wrk_us = [], []
    for _ in range(ROUNDS):
        usage, count, _ = run_wrk(target, CONCURRENCY, SECONDS)
        wrk_us.append(usage.cpu_s / count * 1e6)
        usage, report, _ = run_perfkit(target, ClosedLoop(concurrency=CONCURRENCY), SECONDS)
        ours_us.append(usage.cpu_s / report["outcomes"]["ok"] * 1e6)
    _judge("wrk", ours_us, wrk_us, MOST_OF_WRK, show)


def test_cpu_per_request_beside_locust(start_target, run_perfkit, run_locust, show):
    target = start_target(0)
    ours_us, locust_us = [], []
    for _ in range(ROUNDS):
        usage, count = run_locust(target, CONCURRENCY, SECONDS)
        locust_us.append(usage.cpu_s / count * 1e6)
        usage, report, _ = run_perfkit(target, ClosedLoop(concurrency=CONCURRENCY), SECONDS)
        ours_us.append(usage.cpu_s / report["outcomes"]["ok"] * 1e6)
    _judge("locust", ours_us, locust_us, MOST_OF_LOCUST, show)


def _judge(peer, ours_us, peer_us, most, show):
    ratios = [ours / theirs for ours, theirs in zip(ours_us, peer_us, strict=True)]
    ratio = statistics.median(ratios)
    rows = [
        ("perfkit", [f"{value:.1f}" for value in ours_us]),
        (peer, [f"{value:.1f}" for value in peer_us]),
        ("ratio", [f"{value:.3f}" for value in ratios]),
    ]
    rounds = [f"round {number}" for number in range(1, ROUNDS + 1)]
    show(f"CPU per request in µs, start-up included, {CONCURRENCY} users, no delay", rounds, rows)
    print(f"  median ratio {ratio:.3f}, goal at most {most}: {'pass' if ratio <= most else 'FAIL'}")
    assert ratio <= most
