"""Does each rule name what cannot be right, and keep silent about what can?"""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.importers.audit import CHECKS, audit, audit_document
from perfkit.measuring.importers.imported import Imported, Level, Rows, Timing

CLEAN = Level(
    name="run",
    loop="closed",
    has_think_time=False,
    concurrency=8,
    throughput_rps=756.5,
    requests=4545,
    errors=0,
    timeouts=0,
    new_connections=8,
    duration_s=6.01,
    mean_s=0.01055,
    min_s=0.009,
    max_s=0.0158,
    percentiles_s={0.5: 0.01053, 0.9: 0.01087, 0.99: 0.01373},
)


def imported(*levels, is_range=False):
    timing = Timing(unit="ms", clock="none", scope="cumulative", basis="sent")
    rows = Rows(read=len(levels), kept=len(levels), dropped={})
    return Imported(path="x", format="test", rows=rows, timing=timing, levels=levels, is_range=is_range)


def checks(*levels, is_range=False):
    return [finding.check for finding in audit(imported(*levels, is_range=is_range))]


def scan(*points):
    return [Level(name=str(n), concurrency=n, throughput_rps=rate) for n, rate in points]


def test_a_sound_run_is_passed():
    assert checks(CLEAN) == []


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"concurrency": 7}, "little"),
        ({"concurrency": 7, "loop": "open"}, "connections"),
        ({"concurrency": 16}, "idle_clients"),
        ({"throughput_rps": 900.0}, "rate"),
        ({"throughput_rps": 600.0, "offered_rps": 800.0, "requests": None}, "load_not_delivered"),
        ({"unsent": 12}, "load_not_delivered"),
        ({"new_connections": 4545}, "keep_alive"),
        ({"percentiles_s": {0.5: 0.012, 0.9: 0.011}}, "order"),
        ({"percentiles_s": {0.5: 0.01053, 0.99: 0.016}}, "rounded"),
        ({"percentiles_s": {0.5: 0.011}, "median_s": 0.01053}, "rounded"),
        ({"percentiles_s": {0.5: 0.0100, 0.9: 0.0101, 0.99: 0.0102}}, "mean_bounds"),
        ({"requests": 300, "duration_s": None}, "too_few"),
        ({"errors": 80, "error_mean_s": 0.0005, "good_mean_s": 0.0105}, "fast_errors"),
        ({"timeouts": 16}, "censored"),
    ],
)
def test_a_planted_contradiction_is_named(change, check):
    assert checks(dataclasses.replace(CLEAN, **change)) == [check]


def test_a_percentile_at_the_clients_time_out_is_no_latency():
    level = Level(name="run", errors=72, requests=1000, percentiles_s={0.5: 0.591, 0.99: 10.002}, max_s=10.009)
    assert checks(level) == ["censored"]
    assert checks(dataclasses.replace(level, errors=0)) == []


def test_clients_that_may_pause_need_not_all_wait():
    assert checks(dataclasses.replace(CLEAN, concurrency=100, has_think_time=None)) == []


def test_a_scan_that_never_bends_shows_no_capacity():
    assert checks(*scan((1, 10), (2, 19.8), (4, 39)), is_range=True) == ["no_knee"]
    assert checks(*scan((1, 10), (2, 19.8), (4, 21)), is_range=True) == []
    assert checks(*scan((1, 10), (4, 39)), is_range=True) == []


def test_a_whole_whose_p99_is_the_mean_of_its_parts_is_named():
    parts = [Level(name="GET /a", percentiles_s={0.99: 0.1}), Level(name="GET /b", percentiles_s={0.99: 0.3})]
    assert checks(*parts, Level(name="Total", percentiles_s={0.99: 0.2})) == ["averaged"]
    assert checks(*parts, Level(name="Total", percentiles_s={0.99: 0.26})) == []


def test_every_finding_carries_its_figures_rule_and_source():
    document = audit_document(imported(CLEAN), audit(imported(dataclasses.replace(CLEAN, concurrency=4, row=3))))
    (finding,) = document["findings"]
    assert finding["row"] == 3
    assert finding["figures"]["concurrency"] == 4
    assert (finding["rule"], finding["source"]) == CHECKS["little"]


@given(st.integers(1, 500), st.floats(0.0001, 10), st.floats(0, 0.2))
def test_no_closed_loop_that_obeys_littles_law_is_flagged(clients, mean_s, idle_ratio):
    rate = clients * (1 - idle_ratio) / mean_s
    level = Level(
        name="run", loop="closed", has_think_time=False, concurrency=clients, throughput_rps=rate, mean_s=mean_s
    )
    assert checks(level) == []
    assert checks(dataclasses.replace(level, mean_s=mean_s * 1.4)) == ["little"]
