"""The operational bounds of a closed loop, from what a run says of its workers or from a flat curve."""

import pytest

from perfkit.measuring.analysis.scaling.bounds import Bounds, find_bounds
from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.refusal import Refusal
from perfkit.measuring.analysis.summary import summarise

FLAT = {1: 10.0, 2: 20.0, 4: 38.0, 8: 40.0, 16: 40.0}


def reason(points):
    found = find_bounds(curve_of(points))
    assert isinstance(found, Refusal)
    return found.reason


def test_a_flat_curve_shows_its_ceiling_and_the_crossing(curve):
    found = find_bounds(curve_of(curve(FLAT, half=0.0)))
    assert (found.alone_rps.value, found.ceiling_rps.value, found.crossing.value) == (10.0, 40.0, 4.0)
    assert found.ceiling_of.startswith("the largest throughput")
    assert found.above == ()


def test_busy_workers_show_their_ceiling_before_the_curve_is_flat(curve):
    points = curve({1: 10.0, 2: 20.0, 3: 30.0}, half=0.0)
    points = [one | {"workers_busy_ratio": 0.25 * place} for place, one in enumerate(points, 1)]
    found = find_bounds(curve_of(points))
    assert (found.ceiling_rps.value, found.crossing.value) == (40.0, 4.0)
    assert found.ceiling_of == "model workers, 75.0 % busy at 3 users"


def test_in_virtual_time_the_workers_ceiling_is_the_number_of_workers_over_the_service_time(scenario):
    points = [
        summarise(scenario(seed=users, users=users, workers=3, shape="constant").run(), {"concurrency": users})
        for users in (1, 2, 3, 4, 6)
    ]
    found = find_bounds(curve_of(points))
    assert found.ceiling_rps.value == pytest.approx(300.0, rel=0.01)
    assert found.crossing.value == pytest.approx(3.0, rel=0.03)
    assert found.above == ()


def test_a_point_above_a_bound_is_named(curve):
    points = curve(FLAT | {8: 55.0})
    busy = [one | {"workers_busy_ratio": min(1.0, 0.25 * place)} for place, one in enumerate(points, 1)]
    busy[3]["workers_busy_ratio"] = 0.9
    assert find_bounds(curve_of(busy)).above == (8.0,)


def test_growth_without_a_busy_station_shows_no_ceiling(curve):
    assert reason(curve({n: 10.0 * n for n in (1, 2, 4)})).startswith("throughput still grows")


def test_without_a_lone_user_the_time_alone_is_not_known(curve):
    assert reason(curve({2: 20.0, 4: 40.0, 8: 40.0})).startswith("no usable point at 1 user")


def test_a_window_that_only_the_lone_user_waits_for_is_superlinear(curve):
    assert reason(curve({1: 10.0, 2: 40.0, 4: 40.0})).startswith("superlinear")


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ({"name": "workers"}, "workers is no number of users"),
        ({"load": {"loop": "open"}}, "concurrency in an open loop"),
    ],
)
def test_only_users_in_a_closed_loop_have_these_bounds(curve, more, begins):
    assert reason(curve(FLAT, **more)).startswith(begins)


def test_an_end_that_is_not_known_stays_unknown(curve):
    points = curve(FLAT)
    points[0]["throughput_rps"] |= {"low": None, "high": None}
    found = find_bounds(curve_of(points))
    assert isinstance(found, Bounds)
    assert (found.crossing.low, found.crossing.high) == (None, None)


def test_users_in_step_in_a_short_run_do_not_look_superlinear(curve):
    short = {"requests": 50, "rounds": [{}, {}]}
    points = [
        one | short | {"load": one["load"] | {"concurrency": one["varied"]["concurrency"]}} for one in curve(FLAT)
    ]
    points[1]["throughput_rps"] = {"value": 21.0, "low": 20.9, "high": 21.1}
    assert isinstance(find_bounds(curve_of(points)), Bounds)
    longer = [one | {"requests": 5000} for one in points]
    assert reason(longer).startswith("superlinear: 2 users get at least 2.0")
