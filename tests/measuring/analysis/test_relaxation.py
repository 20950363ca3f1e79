"""How long an open loop must run."""

import dataclasses

import pytest

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.relaxation import LEAST_TIMES, Capacity, find_capacity, needed_seconds, relaxation_s


@pytest.mark.parametrize(("service_s", "load", "needs_s"), [(0.01, 0.8, 269), (0.01, 0.9, 1139), (0.001, 0.8, 27)])
def test_the_published_run_lengths(service_s, load, needs_s):
    assert round(LEAST_TIMES * relaxation_s(load, Capacity(max_rps=1 / service_s, call_s=service_s))) == needs_s


def test_at_capacity_no_length_is_enough():
    assert relaxation_s(1.0, Capacity(max_rps=100.0, call_s=0.01)) == float("inf")


def test_capacity_counts_workers_and_full_batches(scenario):
    run = scenario(seed=1, shape="constant", rate_rps=300.0, workers=2, batch=8, mean_s=0.02, per_item_s=0.002).run()
    found = find_capacity(run, measure_windows(run))
    assert found.max_rps == pytest.approx(2 * 8 / 0.034, rel=0.02)


def test_where_no_batch_was_larger_than_one_batching_is_assumed_to_gain_nothing(scenario):
    run = scenario(seed=1, shape="constant", rate_rps=2.0, batch=8, mean_s=0.02, seconds=20.0, rounds=1).run()
    single = run.batches["size"] == 1
    assert single.all()
    assert find_capacity(run, measure_windows(run)).max_rps == pytest.approx(50.0, rel=0.02)


def test_threads_that_follow_each_other_count_as_the_workers_that_there_were_at_once(scenario):
    run = scenario(seed=1, shape="constant", rate_rps=30.0, batch=1, mean_s=0.02, seconds=20.0, rounds=1).run()
    a_thread_each = run.batches.assign(model_thread=range(len(run.batches)))
    gauges = [gauge | {"threads": place} for place, gauge in enumerate(run.gauges, 1)]
    run = dataclasses.replace(run, batches=a_thread_each, gauges=gauges)
    assert find_capacity(run, measure_windows(run)).max_rps == pytest.approx(2 * 50.0, rel=0.02)


def test_a_closed_loop_has_no_such_length(healthy_run, healthy_open_run):
    assert needed_seconds(healthy_run, measure_windows(healthy_run)) is None
    assert 40 < needed_seconds(healthy_open_run, measure_windows(healthy_open_run)) < 90


def test_bursts_are_forgotten_no_faster_than_they_come_and_go(healthy_open_run):
    bursts = {"burst_s": 2.0, "quiet_s": 6.0, "quiet_ratio": 0.1}
    load = dict(healthy_open_run.load) | {"arrivals": "bursty", "bursts": bursts}
    run = dataclasses.replace(healthy_open_run, load=load)
    assert needed_seconds(run, measure_windows(run)) == pytest.approx(300 * 1.5)  # 1 / (1 / 2 + 1 / 6)
