"""The spread between runs stands beside what each run says of itself, and void runs have no say."""

import numpy as np
import pytest

from perfkit.measuring.analysis.replicates import between_runs


def point(rate, half_ratio=0.01):
    figure = {"value": rate, "low": rate * (1 - half_ratio), "high": rate * (1 + half_ratio)}
    nothing = {"value": None, "low": None, "high": None}
    return {"throughput_rps": figure, "latency_s": {"p50": figure, "p95": figure, "p99": nothing}}


def test_runs_that_differ_more_than_their_intervals_say_are_called_so():
    found = between_runs([point(rate) for rate in (100.0, 104.0, 96.0, 101.0, 99.0)])["throughput_rps"]
    assert (found.n, found.mean.value, found.within_ratio) == (5, 100.0, pytest.approx(0.01))
    assert found.spread_ratio == pytest.approx(np.std([100, 104, 96, 101, 99], ddof=1) / 100)
    assert found.extreme_ratio == pytest.approx(104 / 96)
    assert found.exceeds_within
    assert found.mean.low < 96.5 < 103.5 < found.mean.high


def test_runs_within_their_intervals_are_not():
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        rates = rng.normal(100.0, 1.0, 5)
        alarms += bool(between_runs([point(rate, 0.0196) for rate in rates])["p50_s"].exceeds_within)
    assert alarms <= 20  # 1 in 20 by design


def test_a_figure_that_no_run_has_is_unknown():
    found = between_runs([point(100.0), point(101.0)])["p99_s"]
    assert (found.n, found.mean.value, found.spread_ratio, found.exceeds_within) == (0, None, None, None)


def test_one_run_has_no_spread():
    found = between_runs([point(100.0)])["p50_s"]
    assert (found.mean.value, found.mean.low, found.spread_ratio, found.extreme_ratio) == (100.0, None, None, None)
    assert found.to_json()["exceeds_within"] is None
