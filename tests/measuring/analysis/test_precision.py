"""Looks are fixed beforehand, a goal is reached by width alone, and stopping early does not break the interval."""

import math

import numpy as np
import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.analysis.latency import Quantile, quantile
from perfkit.measuring.analysis.precision import Goal, judge_precision, look_instants, parse_goal, settled


def found(value=1.0, low=0.95, high=1.05, n_eff=1_000.0):
    return Quantile(value=value, low=low, high=high, n=2_000, n_eff=n_eff, needs_s=None)


def test_a_goal_is_read_as_per_cent_or_as_a_ratio():
    goal = Goal(quantile="p99", target_ratio=0.05, looks_s=(10.0, 20.0, 40.0, 60.0))
    assert parse_goal("p99:5%", 10.0, 60.0) == parse_goal("p99:0.05", 10.0, 60.0) == goal
    assert (goal.p, goal.confidence) == (0.99, 0.9875)


@pytest.mark.parametrize("text", ["p98:5%", "p99", "p99:0%", "p99:100%", "p99:1..5%", "fast"])
def test_a_goal_that_cannot_be_read_says_how_to_write_one(text):
    with pytest.raises(ConfigError, match=r"--until (is|asks)"):
        parse_goal(text, 10.0, 60.0)


def test_the_first_look_may_not_come_after_the_last():
    with pytest.raises(ConfigError, match="--most-seconds 5"):
        parse_goal("p99:5%", 10.0, 5.0)


def test_looks_double_up_to_the_last_instant():
    assert look_instants(10.0, 100.0) == (10.0, 20.0, 40.0, 80.0, 100.0)
    assert look_instants(10.0, 10.0) == (10.0,)


def test_half_the_width_decides_and_what_is_missing_grows_with_its_square():
    goal = parse_goal("p99:5%", 10.0, 60.0)
    assert judge_precision(goal, found(low=0.96), 30.0).is_reached
    wide = judge_precision(goal, found(low=0.9, high=1.1), 30.0)
    assert (wide.is_reached, wide.half_width_ratio, wide.needs_s) == (False, pytest.approx(0.1), pytest.approx(120.0))


def test_without_an_upper_end_only_a_bound_of_what_it_takes_is_known():
    goal = parse_goal("p99:5%", 10.0, 60.0)
    open_ended = judge_precision(goal, found(high=None, n_eff=100.0), 10.0)
    assert (open_ended.is_reached, open_ended.is_bound, open_ended.half_width_ratio) == (False, True, None)
    assert open_ended.needs_s > 47.0  # the floor alone asks for 473 effective requests


def test_nothing_measured_needs_nobody_knows_how_long():
    nothing = judge_precision(parse_goal("p99:5%", 1.0, 2.0), quantile(np.array([]), [], 0.99, 0.0), 0.0)
    assert (nothing.is_reached, nothing.needs_s) == (False, None)


def test_the_warm_up_and_the_fill_of_a_closed_loop_do_not_count():
    latency_s = np.concatenate([np.full(40, 9.0), np.random.default_rng(0).normal(1.0, 0.01, 400)])
    assert len(settled(latency_s, users=0)) == 400
    assert len(settled(np.ones(100), users=16)) == 84


def sojourn_times(rng, load, count):
    """Latencies of a stationary M/M/1 queue with service of mean 1 (Lindley's recursion in closed form)."""
    gaps, service = rng.exponential(1 / load, count), rng.exponential(1.0, count)
    first = rng.exponential(1 / (1 - load)) if rng.random() < load else 0.0
    steps = np.cumsum(np.concatenate([[first], service[:-1] - gaps[1:]]))
    return steps - np.minimum(np.minimum.accumulate(steps), 0.0) + service


def sequential_coverage(goal, repeats, stops, load=0.5, least=500):
    """Share of M/M/1 runs, stopped by a rule, whose last interval holds the true quantile, and their mean length."""
    rng = np.random.default_rng(17)
    truth = -math.log(1 - goal.p) / (1 - load)
    hits, lengths = [], []
    for _ in range(repeats):
        latencies = sojourn_times(rng, load, round(least * goal.looks_s[-1]))
        for instant in goal.looks_s:
            count = round(least * instant)
            one = quantile(latencies[:count], [count], goal.p, instant, goal.confidence)
            if stops(one, instant):
                break
        hits.append((one.low or 0.0) <= truth <= (one.high or math.inf))
        lengths.append(instant)
    return float(np.mean(hits)), float(np.mean(lengths))


def by_width(goal):
    return lambda one, instant: judge_precision(goal, one, instant).is_reached


def test_a_run_that_stops_early_still_holds_its_interval():
    goal = parse_goal("p95:15%", 1.0, 32.0)
    covered, length = sequential_coverage(goal, 200, by_width(goal))
    assert length < 24.0  # it does stop early
    assert covered >= 0.92  # claimed .95; two standard errors of 200 repeats are .03


def test_a_run_that_stops_when_it_likes_where_the_interval_lies_does_not():
    """The planted violation: many looks, not widened, until the interval lies below what one had hoped for."""
    hoped = -math.log(0.05) / 0.5
    rng = np.random.default_rng(17)
    missed = 0
    for _ in range(100):
        latencies = sojourn_times(rng, 0.5, 16_000)
        ends = (quantile(latencies[: int(at)], [int(at)], 0.95, 1.0).high for at in np.arange(500, 16_001, 250))
        missed += any(high is not None and high < hoped for high in ends)
    assert missed > 10  # of 100, where 5 would be claimed


@pytest.mark.slow
def test_coverage_when_stopped_by_the_rule():
    for text in ("p50:6%", "p95:12%", "p99:20%"):
        goal = parse_goal(text, 1.0, 64.0)
        covered, length = sequential_coverage(goal, 400, by_width(goal))
        print(f"{text}: {covered:.3f} at {length:.1f} of {goal.looks_s[-1]:g} (widened to {goal.confidence:.4f})")
        assert covered >= 0.93
