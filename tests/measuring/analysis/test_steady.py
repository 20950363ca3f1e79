"""Steps, drifts and windows: found when planted, quiet when not."""

import dataclasses

import numpy as np
import pytest

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.steady import (
    describe_drift,
    describe_steps,
    describe_warmup,
    find_drift,
    find_steps,
    judge_steadiness,
)


def noise(count=40, seed=0, spread=0.03):
    return np.random.default_rng(seed).normal(1.0, spread, count)


def judge(run):
    return judge_steadiness(measure_windows(run), run.think_s, run.is_closed_loop)


def problems(found):
    """Everything that is said against a steady state."""
    lines = (describe_warmup(found), *describe_steps(found), describe_drift(found))
    return tuple(filter(None, (*lines, *(spread.problem for spread in found.spreads))))


def test_a_step_between_block_means_is_found_with_its_levels():
    means = noise()
    means[20:] += 0.3
    (step,) = find_steps(means)
    assert step.at_ratio == 0.5
    assert (step.before_s, step.after_s) == pytest.approx((1.0, 1.3), abs=0.05)


def test_a_step_of_less_than_a_tenth_does_not_matter():
    means = noise(spread=0.005)
    means[20:] += 0.08
    assert find_steps(means) == ()


def test_a_single_stall_is_no_step():
    means = noise()
    means[20] = 10.0
    assert find_steps(means) == ()


def test_a_drift_is_found_with_its_size():
    assert find_drift(noise() + np.linspace(0.0, 0.4, 40)) == pytest.approx(0.33, abs=0.06)
    assert find_drift(noise()) is None


def test_a_healthy_run_is_flat(healthy_run):
    found = judge(healthy_run)
    assert (found.trend, found.warmup_ended, found.drift_ratio, found.steps) == ("flat", True, None, ())
    assert [spread.quantity for spread in found.spreads] == ["throughput", "P50", "P99"]
    assert problems(found) == ()


def test_a_service_that_slows_down_between_rounds_is_called_so(scenario):
    found = judge(scenario(seed=1, shape="normal", rounds=2, scale=lambda number: 1.0 + 0.25 * number).run())
    assert found.trend == "slowdown"
    assert len(found.steps) == 1
    assert "mean latency stepped from" in problems(found)[0]


def test_a_service_that_gets_faster_is_still_warming_up(scenario):
    found = judge(scenario(seed=1, shape="normal", scale=lambda number: 1.3 if number == 0 else 1.0).run())
    assert found.trend == "warmup"


def test_a_last_level_that_has_just_begun_is_no_steady_state(scenario):
    found = judge(scenario(seed=1, shape="normal", rounds=6, scale=lambda number: 1.5 if number == 5 else 1.0).run())
    assert found.trend == "none"


def test_windows_whose_levels_are_apart_are_reported_with_the_ratio(scenario):
    run = scenario(seed=1, shape="normal", scale=lambda number: 1.0 + 0.2 * number).run()
    spreads = {spread.quantity: spread for spread in judge(run).spreads}
    assert spreads["throughput"].ratio == pytest.approx(1.4, abs=0.1)
    assert spreads["P50"].ratio == pytest.approx(1.4, abs=0.1)
    assert "factor of 1." in spreads["P50"].problem


def test_few_requests_give_no_verdict_rather_than_a_wrong_one(scenario):
    found = judge(scenario(seed=1, rounds=1, seconds=0.3, users=4).run())
    assert (found.trend, found.warmup_ended, found.steps, found.spreads) == ("unknown", None, (), ())


def test_a_round_that_never_stops_warming_up_is_a_problem(scenario):
    run = scenario(seed=1, shape="normal", users=4, rounds=1, seconds=4.0).run()
    requests = run.requests.copy()
    since_s = (requests["scheduled_ns"] - run.started_ns).astype("float64") / 1e9
    requests["received_ns"] += (200e6 * np.exp(-since_s / 3.0)).astype("int64")
    found = judge(dataclasses.replace(run, requests=requests))
    assert found.warmup_ended is False
    assert "warm-up had not ended" in problems(found)[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": "normal", "workers": 4},
        {"shape": "normal", "users": 32, "batch": 16, "per_item_s": 0.004},
        {"shape": "constant", "users": 8, "workers": 2},
        {"rate_rps": 50.0, "seconds": 10.0},
    ],
)
def test_steady_queues_are_seldom_called_unsteady(scenario, changes):
    alarms = [bool(problems(judge(scenario(seed=seed, **changes).run()))) for seed in range(10)]
    assert sum(alarms) <= 1


def round_noise(seed, spread=0.05):
    """How much slower each round is than usual: a machine's slow minutes."""
    slow = np.random.default_rng(seed).normal(1.0, spread, 6)
    return lambda number: float(slow[number])


def test_rounds_that_slow_minutes_set_apart_are_seldom_called_unsteady(scenario):
    runs = [scenario(seed=seed, shape="normal", rounds=6, scale=round_noise(seed)).run() for seed in range(20)]
    assert sum(bool(problems(judge(run))) for run in runs) <= 1


def test_a_change_that_stands_out_from_slow_minutes_is_found(scenario):
    def changed(noise):
        return lambda number: noise(number) * (1.0 if number < 3 else 1.4)

    runs = [scenario(seed=seed, shape="normal", rounds=6, scale=changed(round_noise(seed))).run() for seed in range(20)]
    assert sum(bool(problems(judge(run))) for run in runs) >= 12


def test_a_drift_over_rounds_that_hardly_differ_by_chance_is_found(scenario):
    run = scenario(seed=1, shape="normal", rounds=6, scale=lambda number: 1.0 + 0.03 * number).run()
    assert describe_drift(judge(run)).startswith("latency drifted by 1")
