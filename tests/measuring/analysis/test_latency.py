"""Quantiles with floors, and intervals that hold what they promise under load."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.analysis.latency import NO_QUANTILE, at_probability, quantile, variance_inflation

SERVICE_S = 0.01


def sojourn_times(rng, load, count):
    """Latencies of a stationary M/M/1 queue (Lindley's recursion in closed form)."""
    gaps, service = rng.exponential(SERVICE_S / load, count), rng.exponential(SERVICE_S, count)
    first = rng.exponential(SERVICE_S / (1 - load)) if rng.random() < load else 0.0
    steps = np.cumsum(np.concatenate([[first], service[:-1] - gaps[1:]]))
    return steps - np.minimum(np.minimum.accumulate(steps), 0.0) + service


def coverage(load, times, repeats, p=0.99):
    """Share of intervals that hold the true quantile, and share without an upper end."""
    rng = np.random.default_rng(11)
    count = int(times * load / (1 - math.sqrt(load)) ** 2)
    truth = -math.log(1 - p) * SERVICE_S / (1 - load)
    found = [quantile(sojourn_times(rng, load, count), [count], p, 1.0) for _ in range(repeats)]
    hits = [(one.low or 0.0) <= truth <= (one.high or math.inf) for one in found]
    return np.mean(hits), np.mean([one.high is None for one in found])


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_interval_of_p99_covers_at_a_thousand_relaxation_times(load):
    covered, unbounded = coverage(load, times=1000, repeats=150)
    assert 0.89 <= covered <= 0.98  # nominal .95; two standard errors of 150 repeats are .04
    assert unbounded <= 0.12


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_coverage_with_many_repeats(load):
    claimed, unbounded = coverage(load, times=1000, repeats=600)
    beside, beside_unbounded = coverage(load, times=300, repeats=600)
    print(f"load {load}: 1,000 relaxation times {claimed:.3f} ({unbounded:.2f} without upper end), ", end="")
    print(f"300: {beside:.3f} ({beside_unbounded:.2f} without)")
    assert 0.91 <= claimed <= 0.97


def test_a_quantile_below_its_floor_has_no_value_and_says_how_long_to_measure():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 237.0))
    found = quantile(values, [236], 0.99, seconds=10.0)
    assert (found.value, found.high, found.n) == (None, None, 236)
    assert found.low is not None
    assert found.needs_s == pytest.approx(473 / found.n_eff * 10.0)


def test_from_the_floor_on_a_quantile_has_value_and_both_ends():
    values = np.random.default_rng(4).permutation(np.arange(1.0, 1001.0))
    found = quantile(values, [1000], 0.99, seconds=10.0)
    assert found.value == 990.0
    assert found.low < 990.0 < found.high <= 1000.0
    assert found.needs_s is None


def test_no_request_gives_no_quantile():
    assert quantile(np.array([]), [], 0.5, 0.0) == NO_QUANTILE


def test_requests_that_never_got_a_reply_count_as_infinitely_slow():
    values = np.random.default_rng(5).permutation(np.concatenate([np.full(900, 0.1), np.full(100, np.inf)]))
    assert quantile(values, [1000], 0.5, 10.0).value == 0.1
    tail = quantile(values, [1000], 0.95, 10.0)
    assert (tail.value, tail.low, tail.high, tail.needs_s) == (None, None, None, None)


def test_requests_that_resemble_their_neighbours_count_as_few():
    rng = np.random.default_rng(6)
    independent = rng.random(4000)
    grouped = np.repeat(rng.random(40), 100)
    assert variance_inflation((independent > 0.5).astype(float), [4000], 0.5)[0] < 2
    assert variance_inflation((grouped > 0.5).astype(float), [4000], 0.5)[0] > 30


def test_blocks_respect_the_order_inside_rounds_of_a_pool():
    """Rounds at different levels are a between-block spread; shuffled together they would look independent."""
    levels = np.concatenate([np.full(500, 1.0), np.full(500, 2.0)]) + np.random.default_rng(7).random(1000) * 0.1
    pooled = variance_inflation((levels > 1.5).astype(float), [500, 500], 0.5)[0]
    shuffled = variance_inflation((np.random.default_rng(8).permutation(levels) > 1.5).astype(float), [500, 500], 0.5)[
        0
    ]
    assert shuffled < 3
    assert pooled > 20


@given(st.lists(st.floats(0.001, 100.0), min_size=1, max_size=300), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_ends_enclose_the_quantile(values, p):
    found = quantile(np.array(values), [len(values)], p, 1.0)
    middle = at_probability(np.sort(values), p)
    assert (found.low or 0.0) <= middle <= (found.high or math.inf)
    assert (found.value is None) == (found.needs_s is not None)
    assert found.n_eff <= found.n


def test_an_observed_value_is_taken_for_each_probability():
    ordered = np.arange(1.0, 21.0)
    assert [at_probability(ordered, p) for p in (0.0, 0.5, 0.95, 1.0)] == [1.0, 10.0, 19.0, 20.0]


def test_json_has_exactly_the_promised_fields():
    assert set(NO_QUANTILE.to_json()) == {"value", "low", "high", "n", "n_eff", "needs_s"}


def test_one_batch_whose_replies_came_in_one_instant_is_no_crowd_of_independent_requests():
    quick = np.random.default_rng(5).uniform(0.1, 0.3, 632)
    latency_s = np.insert(quick, 300, [0.684] * 16)
    found = quantile(latency_s, [648], 0.99, 10)
    assert found.value is None
    assert found.n_eff < 50
    assert found.high is None
