"""The knee as an interval of several estimators."""

import pytest

from perfkit.measuring.analysis.knee import find_knee


def point(name, value, rate_rps, p99_s=0.1, grade="sound", half=0.002, loop="closed"):
    high = {"value": p99_s, "low": p99_s, "high": p99_s}
    return {
        "varied": {name: value},
        "load": {"loop": loop},
        "throughput_rps": {"value": rate_rps, "low": rate_rps * (1 - half), "high": rate_rps * (1 + half)},
        "latency_s": {"p50": high, "p95": high, "p99": high},
        "error_ratio": 0.0,
        "grade": grade,
    }


def curve(name, rates, **more):
    return [point(name, value, rate, **more) for value, rate in rates.items()]


SATURATING = {1: 10.0, 2: 20.0, 4: 39.0, 8: 41.0, 16: 41.0}


def test_a_saturating_curve_has_its_knee_where_the_gain_ends():
    found = find_knee(list(SATURATING), curve("workers", SATURATING))
    assert (found["setting"], found["low"], found["high"]) == ("workers", 4.0, 4.0)
    assert found["method"] == "throughput gain below 0.1 from 4.00; Kneedle at 4.00"


def test_wide_intervals_widen_the_knee():
    found = find_knee(list(SATURATING), curve("workers", SATURATING, half=0.1))
    assert (found["low"], found["high"]) == (4.0, 16.0)


def test_in_a_closed_loop_the_crossing_of_the_bounds_is_an_estimate():
    found = find_knee(list(SATURATING), curve("concurrency", SATURATING))
    assert (found["low"], found["high"]) == (4.0, pytest.approx(4.1))
    assert "bounds cross at 4.10" in found["method"]


def test_the_budget_is_an_estimate_when_it_lies_inside_the_scan():
    points = [point("workers", n, rate, p99_s=0.01 * n) for n, rate in SATURATING.items()]
    found = find_knee(list(SATURATING), points, p99_s=0.025)
    assert (found["low"], found["high"]) == (2, 4.0)
    assert "P99 at most 25.0 ms up to 2.00" in found["method"]


def test_a_line_has_no_knee():
    rates = {n: 10.0 * n for n in (1, 2, 4, 8, 16)}
    found = find_knee(list(rates), curve("workers", rates))
    assert found is None


def test_the_order_of_the_points_does_not_matter():
    values = [8, 1, 16, 4, 2]
    points = [point("workers", n, SATURATING[n]) for n in values]
    assert find_knee(values, points) == find_knee(list(SATURATING), curve("workers", SATURATING))


def test_void_points_are_left_out_and_three_must_remain():
    points = curve("workers", SATURATING)
    assert find_knee(list(SATURATING), [one | {"grade": "void"} for one in points[:3]] + points[3:]) is None
    assert find_knee(list(SATURATING), [points[0] | {"grade": "unsteady"}, *points[1:]])["low"] == 4.0


@pytest.mark.parametrize("names", [{"policy": "a"}, {"workers": True}])
def test_only_a_numeric_setting_has_a_knee(names):
    points = [one | {"varied": names} for one in curve("workers", SATURATING)]
    assert find_knee(list(SATURATING), points) is None


def test_a_grid_of_two_settings_has_no_single_knee():
    points = [one | {"varied": one["varied"] | {"batch.max_size": 1}} for one in curve("workers", SATURATING)]
    assert find_knee(list(SATURATING), points) is None


def test_throughput_that_falls_ends_the_gain():
    rates = {1: 10.0, 2: 19.0, 4: 15.0, 8: 12.0}
    assert find_knee(list(rates), curve("workers", rates))["low"] == 2.0


def test_a_knee_beside_an_unfit_point_may_lie_there_too():
    points = [point("workers", n, rate, grade="unsteady" if n == 8 else "sound") for n, rate in SATURATING.items()]
    found = find_knee(list(SATURATING), points)
    assert (found["low"], found["high"]) == (4.0, 8.0)
    assert found["method"].endswith("; left out as unfit: 8.00")
