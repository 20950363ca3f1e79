"""Where the warm-up ends, and what counts as measured."""

import dataclasses

import numpy as np

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.warmup import Cut, find_windows, mser_cut


def noise(count, seed=0):
    return np.random.default_rng(seed).normal(1.0, 0.05, count)


def test_mser_drops_a_warm_up_and_keeps_the_rest():
    values = noise(400)
    values[:60] += np.linspace(2.0, 0.5, 60)
    cut = mser_cut(values)
    assert cut.ended
    assert 60 <= cut.dropped <= 90


def test_a_minimum_at_the_limit_means_that_the_round_was_too_short():
    cut = mser_cut(noise(200) + 3 * np.exp(-np.arange(200) / 150))
    assert cut == Cut(dropped=100, ended=False)


def test_fewer_than_fifty_values_cannot_tell():
    assert mser_cut(noise(49)) == Cut(dropped=0, ended=None)


def test_a_constant_series_has_no_warm_up():
    assert mser_cut(np.full(300, 0.0123456789)) == Cut(dropped=0, ended=True)


def test_steady_noise_is_rarely_cut_by_much():
    dropped = [mser_cut(noise(500, seed)).dropped for seed in range(50)]
    assert np.median(dropped) <= 50


def test_windows_lie_inside_their_rounds_and_skip_the_fill_of_a_closed_loop(healthy_run):
    windows = find_windows(healthy_run)
    assert [window.round for window in windows] == [0, 1, 2]
    for window, entry in zip(windows, healthy_run.rounds, strict=True):
        assert entry["started_ns"] <= window.start_ns + healthy_run.started_ns < window.end_ns + healthy_run.started_ns
        assert window.end_ns + healthy_run.started_ns <= entry["ended_ns"]
        assert window.warmup_s > 0
        assert window.warmup_ended


def test_a_round_without_requests_has_no_window(healthy_run):
    rounds = [
        *healthy_run.rounds,
        {"index": 9, "started_ns": healthy_run.ended_ns, "ended_ns": healthy_run.ended_ns + 1},
    ]
    assert [window.round for window in find_windows(dataclasses.replace(healthy_run, rounds=rounds))] == [0, 1, 2]


def test_a_closed_loop_that_made_no_whole_turn_after_its_fill_has_no_window(scenario):
    run = scenario(seed=3, shape="normal", users=4, seconds=6.0, rounds=1).run()
    first = run.requests.sort_values("scheduled_ns").iloc[:8]  # a turn to fill the service, and the start of the next
    assert find_windows(dataclasses.replace(run, requests=first)) == ()


def test_a_slow_start_of_every_round_is_not_measured(scenario):
    run = scenario(seed=3, shape="normal", users=4, seconds=6.0, rounds=2).run()
    slow = run.requests.copy()
    for entry in run.rounds:
        early = (slow["round"] == entry["index"]) & (slow["scheduled_ns"] < entry["started_ns"] + 1_000_000_000)
        slow.loc[early, "received_ns"] += 100_000_000
    windows = find_windows(dataclasses.replace(run, requests=slow))
    assert all(0.9 < window.warmup_s < 2.0 for window in windows)


def test_measured_requests_are_in_the_order_of_their_schedule(healthy_run):
    shuffled = dataclasses.replace(healthy_run, requests=healthy_run.requests.sample(frac=1, random_state=1))
    measured, again = measure_windows(healthy_run), measure_windows(shuffled)
    assert list(measured.latency_s) == list(again.latency_s)
    assert measured.sizes == again.sizes
    assert sum(measured.sizes) == len(measured.rows) == len(measured.latency_s)


def test_latency_counts_from_the_schedule_and_service_from_the_send(healthy_run):
    measured = measure_windows(healthy_run)
    assert np.allclose(measured.latency_s - measured.service_s, 10e-6)


def test_a_request_that_timed_out_stays_in_the_count_as_infinite(healthy_run):
    requests = healthy_run.requests.copy()
    victim = requests.index[len(requests) // 2]
    requests.loc[victim, "end_state"] = "timed_out"
    requests["received_ns"] = requests["received_ns"].mask(requests.index == victim)
    measured = measure_windows(dataclasses.replace(healthy_run, requests=requests))
    assert int(np.isinf(measured.latency_s).sum()) == 1
