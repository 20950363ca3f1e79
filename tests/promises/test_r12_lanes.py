"""R12: does a flood in one lane leave the other lane alone, and does no lane starve?

Two lanes before a simulated service that does 100 requests a second, one a call: *online* goes first, *offline* takes
what is left. First a flood of offline requests, twenty times as many as the online ones; then a flood of online ones.
Each lane has a generator of its own.
"""

import numpy as np
import pytest

from perfkit.clock import NS_PER_S
from perfkit.measuring.load.loops import OpenLoop
from perfkit.measuring.load.samples import read_samples
from perfkit.records import EndState

MODEL, SERVICE_S, DEPTH = "simulated:steady-100rps", 0.010, 20
ONLINE_RPS, OFFLINE_RPS, FLOOD_RPS = 25.0, 20.0, 500.0
AGING_S, AGED_EVERY = 0.3, 10
LANES = {"lanes.online.priority": 0, "lanes.offline.priority": 1, "lane_order.aging_s": AGING_S}
MOST_TIMES, LEAST_SHARE = 1.2, 0.05
SETTLED_S = 0.5  # the flooded lane's queue is full, and the other's first request has aged
MOST_AGE_S = AGING_S + DEPTH * AGED_EVERY * SERVICE_S  # a full queue of the low lane, one of ten that leave is its
SMOKE_S, MOST_ALONE_S = 2.0, 60.0
SIZES = [
    pytest.param(SMOKE_S, 50, id="smoke"),
    pytest.param(600.0, 99, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


def lane_load(lane, rate_rps):
    return OpenLoop(rate_rps=rate_rps, lane=lane, reply_timeout_s=10.0, max_connections=4096)


def latencies_s(*generators):
    """For each generator, of the good replies that came while all were at work and everything had settled."""
    reports = [generator.report() for generator in generators]
    start_ns = max(report["started_ns"] for report in reports) + SETTLED_S * NS_PER_S
    end_ns = min(report["ended_ns"] for report in reports)
    found = []
    for samples in (read_samples(generator.spec.samples) for generator in generators):
        received = samples["received_ns"]
        good = (samples["outcome"] == EndState.OK) & (received > start_ns) & (received <= end_ns)
        found.append((received - samples["scheduled_ns"])[good] / NS_PER_S)
    return found


def both(server, generate, seconds, online_rps, offline_rps):
    """Latencies of the online and of the offline lane's good replies, loaded at the same time."""
    lanes = {"online": online_rps, "offline": offline_rps}
    return latencies_s(*(generate(server, lane_load(name, rate_rps), seconds) for name, rate_rps in lanes.items()))


def flooded(server, generate, seconds, percentile):
    """A percentile of the online lane's latency, alone and beside a flood of offline requests."""
    (alone_s,) = latencies_s(generate(server, lane_load("online", ONLINE_RPS), min(seconds, MOST_ALONE_S)))
    beside_s, _ = both(server, generate, seconds, ONLINE_RPS, FLOOD_RPS)
    return float(np.percentile(alone_s, percentile)), float(np.percentile(beside_s, percentile))


@pytest.mark.parametrize(("seconds", "percentile"), SIZES)
def test_a_flood_in_the_low_lane_leaves_the_high_lane_alone(serve, generate, told, seconds, percentile):
    server = serve(MODEL, changes={"queue.depth": DEPTH, **LANES})
    alone_s, beside_s = flooded(server, generate, seconds, percentile)
    figures = {f"alone_p{percentile}_s": alone_s, f"beside_p{percentile}_s": beside_s}
    told("R12", f"high lane's P{percentile} <= 1.2 x alone + one batch of 10 ms (simulated service)", **figures)
    assert beside_s <= MOST_TIMES * alone_s + SERVICE_S


def test_without_lanes_the_same_flood_makes_everybody_wait(serve, generate, told):
    server = serve(MODEL, changes={"queue.depth": DEPTH})
    alone_s, beside_s = flooded(server, generate, SMOKE_S, 50)
    told("R12 control", "no lanes: above 1.2 x alone + one batch", alone_p50_s=alone_s, beside_p50_s=beside_s)
    assert beside_s > MOST_TIMES * alone_s + SERVICE_S


@pytest.mark.parametrize("seconds", [pytest.param(*size.values[:1], id=size.id, marks=size.marks) for size in SIZES])
def test_a_flood_in_the_high_lane_does_not_starve_the_low_lane(serve, generate, told, seconds):
    server = serve(MODEL, changes={"queue.depth": DEPTH, **LANES})
    online_s, offline_s = both(server, generate, seconds, FLOOD_RPS, OFFLINE_RPS)
    share, oldest_s = len(offline_s) / (len(online_s) + len(offline_s)), float(max(offline_s))
    told("R12", f"low lane >= 5 % of replies, age <= {MOST_AGE_S:g} s", share_ratio=share, oldest_s=oldest_s)
    assert share >= LEAST_SHARE
    assert oldest_s <= MOST_AGE_S


def test_without_aging_the_low_lane_starves(serve, generate, told):
    server = serve(MODEL, changes={"queue.depth": DEPTH, **LANES, "lane_order.aging_s": None})
    online_s, offline_s = both(server, generate, SMOKE_S, FLOOD_RPS, OFFLINE_RPS)
    share = len(offline_s) / (len(online_s) + len(offline_s))
    told("R12 control", "without aging: below 5 % of replies", share_ratio=share)
    assert share < LEAST_SHARE
