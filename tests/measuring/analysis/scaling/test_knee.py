"""The knee as an interval of several estimators."""

import pytest

from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.knee import BUDGET, CROSSING, ELASTICITY, KNEEDLE, estimate_knee, find_knee

SATURATING = {1: 10.0, 2: 20.0, 4: 39.0, 8: 41.0, 16: 41.0}


def by_name(points, p99_s=None):
    return {one.estimator: one for one in estimate_knee(curve_of(points), p99_s)}


def test_a_saturating_curve_has_its_knee_where_the_gain_ends(curve):
    found = find_knee(curve(SATURATING, name="workers"))
    assert found == {
        "setting": "workers",
        "low": 4.0,
        "high": 4.0,
        "method": "throughput gain below 0.1 from 4; Kneedle at 4",
    }


def test_wide_intervals_widen_the_knee(curve):
    found = find_knee(curve(SATURATING, name="workers", half=0.1))
    assert (found["low"], found["high"]) == (4.0, 16.0)


def test_in_a_closed_loop_the_crossing_of_the_bounds_is_an_estimate(curve):
    found = find_knee(curve(SATURATING))
    assert (found["low"], found["high"]) == (4.0, pytest.approx(4.1, rel=0.005))
    assert "bounds cross at 4.10" in found["method"]


def test_the_budget_is_an_estimate_when_it_lies_inside_the_scan(point):
    points = [point(n, rate, p99_s=0.01 * n, name="workers") for n, rate in SATURATING.items()]
    found = find_knee(points, p99_s=0.025)
    assert (found["low"], found["high"]) == (2, 4.0)
    assert "P99 at most 25.0 ms up to 2" in found["method"]


def test_the_budget_reaches_to_the_last_value_that_is_not_certainly_beyond_it(point):
    points = [point(n, rate, p99_s=0.01 * n, name="workers") for n, rate in SATURATING.items()]
    points[2]["latency_s"]["p99"] = {"value": 0.026, "low": 0.021, "high": 0.031}
    found = by_name(points, p99_s=0.025)[BUDGET]
    assert (found.value, found.low, found.high) == (2, 2, 4)


@pytest.mark.parametrize(
    ("budget_s", "reason"),
    [
        (None, "no latency budget was given"),
        (0.001, "P99 is not certainly within 1.00 ms at any value"),
        (9.0, "P99 is within 9.00 s even at 16; scan further"),
    ],
)
def test_a_budget_that_lies_outside_the_scan_is_refused_with_its_reason(point, budget_s, reason):
    points = [point(n, rate, p99_s=0.01 * n) for n, rate in SATURATING.items()]
    assert by_name(points, p99_s=budget_s)[BUDGET].refusal == reason


def test_a_line_has_no_knee_for_any_estimator(curve):
    points = curve({n: 10.0 * n for n in (1, 2, 4, 8, 16)})
    assert find_knee(points) is None
    assert by_name(points)[ELASTICITY].refusal == "throughput still gains at the largest value, 16"
    assert by_name(points)[CROSSING].refusal.startswith("throughput still grows at the largest number of users")
    assert by_name(points)[KNEEDLE].refusal.startswith("no bend above the noise")


def test_a_knee_that_kneedle_alone_sees_is_none(curve, law):
    points = curve({n: law(n, 10.0, 0.02, 0.0) for n in (1, 2, 4, 8, 16, 32, 64)})
    assert {name for name, one in by_name(points).items() if one.refusal is None} == {KNEEDLE}
    assert find_knee(points) is None


def test_the_order_of_the_points_does_not_matter(point, curve):
    shuffled = [point(n, SATURATING[n], name="workers") for n in (8, 1, 16, 4, 2)]
    assert find_knee(shuffled) == find_knee(curve(SATURATING, name="workers"))


def test_void_points_are_left_out_and_three_must_remain(curve):
    points = curve(SATURATING, name="workers")
    few = [one | {"grade": "void"} for one in points[:3]] + points[3:]
    assert find_knee(few) is None
    assert {one.refusal for one in estimate_knee(curve_of(few))} == {"2 usable points; a knee takes 3"}
    assert find_knee([points[0] | {"grade": "unsteady"}, *points[1:]])["low"] == 4.0


@pytest.mark.parametrize("names", [{"policy": "a"}, {"workers": True}, {"max_delay_s": 0}])
def test_only_a_setting_with_a_scale_has_a_knee(curve, names):
    assert find_knee([one | {"varied": names} for one in curve(SATURATING)]) is None


def test_a_grid_of_two_settings_has_no_single_knee(curve):
    points = [one | {"varied": one["varied"] | {"batch.max_size": 1}} for one in curve(SATURATING)]
    assert find_knee(points) is None


def test_throughput_that_falls_ends_the_gain(curve):
    rates = {1: 10.0, 2: 19.0, 4: 15.0, 8: 12.0}
    assert find_knee(curve(rates, name="workers"))["low"] == 2.0


def test_a_knee_beside_an_unfit_point_may_lie_there_too(point):
    points = [point(n, rate, grade="unsteady" if n == 8 else "sound", name="workers") for n, rate in SATURATING.items()]
    found = find_knee(points)
    assert (found["low"], found["high"]) == (4.0, 8.0)
    assert found["method"].endswith("; left out as unfit: 8")
