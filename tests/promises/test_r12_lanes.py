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
MOST_PASSED = (DEPTH + 1) * AGED_EVERY + round(AGING_S / SERVICE_S)
"""What may leave while a request waits behind a full queue of the low lane: one in ten is its lane's, once aged."""
SMOKE_S, MOST_ALONE_S = 2.0, 60.0
SIZES = [
    pytest.param(SMOKE_S, 50, id="smoke"),
    pytest.param(600.0, 99, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
]


def lane_load(lane, rate_rps):
    return OpenLoop(rate_rps=rate_rps, lane=lane, reply_timeout_s=10.0, max_connections=4096)


def replies(*generators):
    """For each generator, when its good requests were due and answered, of those answered once all had settled."""
    reports = [generator.report() for generator in generators]
    start_ns = max(report["started_ns"] for report in reports) + SETTLED_S * NS_PER_S
    end_ns = min(report["ended_ns"] for report in reports)
    found = []
    for samples in (read_samples(generator.spec.samples) for generator in generators):
        received = samples["received_ns"]
        good = (samples["outcome"] == EndState.OK) & (received > start_ns) & (received <= end_ns)
        found.append((samples["scheduled_ns"][good], received[good]))
    return found


def both(server, generate, seconds, online_rps, offline_rps):
    """The good replies of the online and of the offline lane, loaded at the same time."""
    lanes = {"online": online_rps, "offline": offline_rps}
    return replies(*(generate(server, lane_load(name, rate_rps), seconds) for name, rate_rps in lanes.items()))


def percentile_s(lane, percentile):
    """Of a lane's latency."""
    scheduled_ns, received_ns = lane
    return float(np.percentile(received_ns - scheduled_ns, percentile)) / NS_PER_S


def share_of(lane, other):
    """A lane's part of all replies."""
    return len(lane[1]) / (len(lane[1]) + len(other[1]))


def passed_by(lane, other):
    """Age counted in replies: the most that anybody got while one request of a lane waited."""
    everybody_ns = np.sort(np.concatenate([lane[1], other[1]]))
    return int((np.searchsorted(everybody_ns, lane[1]) - np.searchsorted(everybody_ns, lane[0])).max())


def flooded(server, generate, seconds, percentile):
    """A percentile of the online lane's latency, alone and beside a flood of offline requests."""
    (alone,) = replies(generate(server, lane_load("online", ONLINE_RPS), min(seconds, MOST_ALONE_S)))
    beside, _ = both(server, generate, seconds, ONLINE_RPS, FLOOD_RPS)
    return percentile_s(alone, percentile), percentile_s(beside, percentile)


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
    online, offline = both(server, generate, seconds, FLOOD_RPS, OFFLINE_RPS)
    share, passed = share_of(offline, online), passed_by(offline, online)
    figures = {"share_ratio": share, "oldest_replies": passed, "oldest_s": percentile_s(offline, 100)}
    told("R12", f"low lane >= 5 % of replies, age <= {MOST_PASSED} replies (simulated service)", **figures)
    assert share >= LEAST_SHARE
    assert passed <= MOST_PASSED


def test_without_aging_the_low_lane_starves(serve, generate, told):
    server = serve(MODEL, changes={"queue.depth": DEPTH, **LANES, "lane_order.aging_s": None})
    online, offline = both(server, generate, SMOKE_S, FLOOD_RPS, OFFLINE_RPS)
    told("R12 control", "without aging: below 5 % of replies", share_ratio=share_of(offline, online))
    assert share_of(offline, online) < LEAST_SHARE
