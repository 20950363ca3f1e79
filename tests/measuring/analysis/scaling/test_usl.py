"""The universal scalability law: known answers, refusals, and what a fit will not say."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.scaling.usl import UslFit, fit_usl

HALF_95 = 1.959964
USERS = (1, 2, 4, 8, 16, 32, 64)
LEAST_COVERAGE = 0.90  # of 95 % intervals; over 400 data sets three standard errors are 0.033, over 60 they are 0.084


def usl(users, g, s, k):
    return g * users / (1 + s * (users - 1) + k * users * (users - 1))


def noisy(users, truth, error_ratio, rng):
    """Points whose throughput scatters around the law by the standard error that their intervals claim."""
    rates = {n: usl(n, *truth) * (1 + error_ratio * rng.normal()) for n in users}
    half = error_ratio * HALF_95
    return [
        {
            "varied": {"concurrency": n},
            "load": {"loop": "closed"},
            "settings": {},
            "throughput_rps": {"value": rate, "low": rate * (1 - half), "high": rate * (1 + half)},
            "grade": "sound",
        }
        for n, rate in rates.items()
    ]


def test_exact_points_give_the_parameters_back(curve, law):
    fit = fit_usl(curve_of(curve({n: law(n, 100.0, 0.03, 0.0005) for n in USERS})))
    assert (fit.at_one_rps.value, fit.contention.value, fit.coherence.value) == pytest.approx((100.0, 0.03, 0.0005))
    assert fit.peak.value == pytest.approx(((1 - 0.03) / 0.0005) ** 0.5)
    assert fit.throughput(20).value == pytest.approx(law(20, 100.0, 0.03, 0.0005))
    assert sum(fit.shares(64).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("truth", [(100.0, 0.05, 0.001), (2500.0, 0.1, 0.0)])
def test_the_intervals_cover_the_parameters_that_made_the_data(truth, count):
    rng = np.random.default_rng(3)
    fits = [fit_usl(curve_of(noisy(USERS, truth, 0.01, rng)), seed=number) for number in range(count)]
    assert all(isinstance(fit, UslFit) for fit in fits)
    for name, value in zip(("at_one_rps", "contention", "coherence"), truth, strict=True):
        held = [getattr(fit, name).low <= value <= getattr(fit, name).high for fit in fits]
        print(f"simulated: coverage of {name} = {value}: {np.mean(held):.3f} of {len(fits)} (95 % intervals)")
        assert np.mean(held) >= LEAST_COVERAGE, name


def test_a_planted_interval_that_is_too_narrow_does_not_cover():
    rng = np.random.default_rng(3)
    fits = [fit_usl(curve_of(noisy(USERS, (100.0, 0.05, 0.001), 0.01, rng)), seed=number) for number in range(20)]
    half = [(fit.contention.high - fit.contention.low) / 2 for fit in fits]
    held = [abs(fit.contention.value - 0.05) < half / 4 for fit, half in zip(fits, half, strict=True)]
    assert np.mean(held) < LEAST_COVERAGE


@settings(max_examples=40, deadline=None)
@given(
    g=st.floats(0.1, 1e5),
    s=st.floats(0.0, 0.5),
    k=st.floats(0.0, 0.01),
    error_ratio=st.floats(0.001, 0.03),
    seed=st.integers(0, 1000),
)
def test_a_fit_keeps_its_bounds_and_its_order_or_says_why_not(g, s, k, error_ratio, seed):
    found = fit_usl(curve_of(noisy(USERS, (g, s, k), error_ratio, np.random.default_rng(seed))))
    if isinstance(found, Refusal):
        assert found.reason
        return
    assert 0 <= found.contention.low <= found.contention.value <= found.contention.high <= 1
    assert 0 <= found.coherence.low <= found.coherence.value <= found.coherence.high
    assert found.at_one_rps.low <= found.at_one_rps.value <= found.at_one_rps.high
    assert found.peak.high is None or 1 <= found.peak.low <= found.peak.high <= found.reach


def reason(points):
    found = fit_usl(curve_of(points))
    assert isinstance(found, Refusal)
    return found.reason


def test_a_scale_of_the_throughput_changes_nothing_but_the_throughput(curve, law):
    rates = {n: law(n, 100.0, 0.03, 0.0005) for n in USERS}
    small, large = (fit_usl(curve_of(curve({n: x * scale for n, x in rates.items()}))) for scale in (1.0, 1e3))
    assert large.contention.to_json() == pytest.approx(small.contention.to_json())
    assert large.at_one_rps.value == pytest.approx(1e3 * small.at_one_rps.value)


def test_nothing_is_said_beyond_one_and_a_half_times_the_largest_number(curve, law):
    fit = fit_usl(curve_of(curve({n: law(n, 100.0, 0.03, 0.0005) for n in USERS})))
    assert fit.throughput(96).value == pytest.approx(law(96, 100.0, 0.03, 0.0005))
    assert fit.throughput(97).reason.startswith("97 users lie outside 1 to 96")
    assert max(row["users"] for row in fit.to_json()["curve"]) == 96


def test_a_peak_beyond_the_reach_has_no_value(curve, law):
    fit = fit_usl(curve_of(curve({n: law(n, 100.0, 0.1, 1e-5) for n in USERS})))
    assert (fit.peak.value, fit.peak.low, fit.peak.high) == (None, 96.0, None)


def test_too_few_numbers_of_users_are_refused(curve, law):
    assert "5 usable numbers of users" in reason(curve({n: law(n, 10, 0.1, 0.001) for n in USERS[:5]}))


def test_without_a_lone_user_there_is_no_fit(curve, law):
    assert "no point at 1 user" in reason(curve({n: law(n, 10, 0.1, 0.001) for n in range(2, 12)}))


def test_a_rate_is_no_number_of_users(curve):
    points = curve({rate: float(rate) for rate in USERS}, name="load.rate_rps", load={"loop": "open"})
    assert reason(points).startswith("a rate in an open loop is no number of users")


def test_another_setting_is_no_number_of_users(curve, law):
    assert reason(curve({n: law(n, 10, 0.1, 0.001) for n in USERS}, name="workers")).startswith("workers is no number")


def test_batches_make_the_law_misspecified(curve, law):
    batching = {"settings": {"batch": {"max_size": 8}}}
    points = curve({n: law(n, 10, 0.1, 0.001) for n in USERS}, batch_fill_ratio=0.5, **batching)
    assert reason(points).startswith("dynamic batching: a call took 4.00 requests on average at 1 users")
    alone = curve({n: law(n, 10, 0.1, 0.001) for n in USERS}, batch_fill_ratio=0.125, **batching)
    assert isinstance(fit_usl(curve_of(alone)), UslFit)  # batching is allowed, and never happened


def test_hidden_batching_shows_as_superlinear(curve):
    window = {n: 10.0 * n * (3 if 4 <= n <= 8 else 1) if n < 16 else 240.0 for n in USERS}
    assert reason(curve(window)).startswith("superlinear: 4 users get at least 12.0 times the throughput of one")


def test_a_pool_that_fills_up_has_another_form(curve):
    assert reason(curve({n: 10.0 * min(n, 8) for n in USERS})).startswith("residual pattern --++--+: 8 users lie")


def test_noise_that_would_hide_another_form_is_refused_too(curve):
    points = curve({n: 10.0 * min(n, 4) for n in USERS}, half=0.3)
    assert reason(points).startswith("residual pattern --+---+: 4 users lie")
    assert reason(points).endswith("with so much noise another form would not show; measure longer")


def test_a_scan_that_ends_before_the_knee_is_refused(curve, law):
    points = curve({n: law(n, 10, 0.005, 0.0) for n in range(1, 9)})
    assert "below the knee" in reason(points)
    points = curve({n: law(n, 10, 0.9, 0.0) for n in (1, 8, 16, 32, 48, 64)})
    assert "above the knee" in reason(points)


def test_a_point_without_an_interval_cannot_be_weighted(curve, law):
    points = curve({n: law(n, 10, 0.1, 0.001) for n in USERS})
    points[2]["throughput_rps"] |= {"low": None, "high": None}
    assert reason(points).startswith("the throughput at 4 users has no interval")
