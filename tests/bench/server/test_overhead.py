"""What does the server add to a model that computes nothing, beside its peers and beside itself without stamps?

Stamps are the instants of the ledger and the readings of each stage's CPU time beside them; off, neither is taken.
"""

import timeit

import pytest

from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.ledger import Ledger

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1200)]

ROUNDS = 5
SECONDS = 3
CONCURRENCY = 32
MOST_OF_FASTAPI = 0.35
MOST_OF_LITSERVE = 0.10
MOST_P50_OF_FASTAPI = 0.5
MOST_WITH_STAMPS = 1.15
MOST_STAMP_S = 1e-6
STAMPS = 100_000


def _medians(show, heading, played, figure, pattern):
    return show(heading, {name: [figure(phases[name]) for phases in played] for name in played[0]}, pattern)


def _ratio(show, played, ours, theirs, figure):
    """The median over the rounds of ours to theirs, shown as a row of its own."""
    name = f"{ours} / {theirs}"
    ratios = [figure(phases[ours]) / figure(phases[theirs]) for phases in played]
    return show("Ratios", {name: ratios}, ".3f")[name]


def _cpu_us(phase):
    return phase.cpu_us


def _p50_us(phase):
    return phase.p50_s * 1e6


@pytest.fixture
def play_beside_fastapi(start_perfkit, start_peer, drive):
    """One round of FastAPI's thread pool and ours."""

    def play(users):
        with start_peer("PERFKIT_PEER_FASTAPI", "fastapi_pool", "noop") as peer:
            theirs = drive(peer, users, SECONDS)
        with start_perfkit("noop") as (ours, _):
            return {"FastAPI": theirs, "perfkit": drive(ours, users, SECONDS)}

    return play


def test_cost_beside_the_thread_pool_of_fastapi(play_beside_fastapi, rounds, show, judge):
    played = rounds(lambda: play_beside_fastapi(CONCURRENCY), ROUNDS)
    _medians(show, f"Server CPU per request, µs, no-op, {CONCURRENCY} users", played, _cpu_us, ".0f")
    judge("CPU per request of FastAPI's", _ratio(show, played, "perfkit", "FastAPI", _cpu_us), most=MOST_OF_FASTAPI)


def test_latency_beside_the_thread_pool_of_fastapi(play_beside_fastapi, rounds, show, judge):
    played = rounds(lambda: play_beside_fastapi(1), ROUNDS)
    _medians(show, "P50, µs, no-op, one user", played, _p50_us, ".0f")
    judge("P50 of FastAPI's", _ratio(show, played, "perfkit", "FastAPI", _p50_us), most=MOST_P50_OF_FASTAPI)


def test_cost_beside_litserve(start_perfkit, start_peer, drive, rounds, show, judge):
    def play():
        with start_peer("PERFKIT_PEER_LITSERVE", "lit_serving", "noop", "1", "1") as peer:
            theirs = drive(peer, CONCURRENCY, SECONDS)
        with start_perfkit("noop") as (ours, _):
            return {"LitServe": theirs, "perfkit": drive(ours, CONCURRENCY, SECONDS)}

    played = rounds(play, ROUNDS)
    _medians(show, f"Server CPU per request, µs, no-op, {CONCURRENCY} users", played, _cpu_us, ".0f")
    judge("CPU per request of LitServe's", _ratio(show, played, "perfkit", "LitServe", _cpu_us), most=MOST_OF_LITSERVE)


def test_cost_of_all_stamps(start_perfkit, drive, rounds, show, judge):
    with start_perfkit("noop") as (stamped, _), start_perfkit("noop", ledger={"stamps": False}) as (bare, _):

        def play():
            return {"off": drive(bare, CONCURRENCY, SECONDS), "on": drive(stamped, CONCURRENCY, SECONDS)}

        played = rounds(play, ROUNDS)
    _medians(show, f"Server CPU per request, µs, no-op, {CONCURRENCY} users, stamps off and on", played, _cpu_us, ".1f")
    judge("CPU per request with stamps", _ratio(show, played, "on", "off", _cpu_us), most=MOST_WITH_STAMPS)


def test_cost_of_one_stamp(ahead, show, judge):
    ledger = Ledger(c.REQUEST_COLUMNS, 1024)
    cells, row, now_ns = ledger.cells, ledger.open(), ledger.now_ns

    def stamp():
        cells[row + c.PARSED] = now_ns()

    with ahead():
        seconds = [timeit.timeit(stamp, number=STAMPS) / STAMPS for _ in range(7)]
    median = show("One stamp, µs, call included", {"stamp": [value * 1e6 for value in seconds]}, ".3f")["stamp"]
    judge("one stamp in µs", median, most=MOST_STAMP_S * 1e6)
