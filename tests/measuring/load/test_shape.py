"""Do the profiles go through the levels that they say, without a gap, and refuse what makes no sense?"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop, load_from_nested, load_to_nested
from perfkit.measuring.load.shape import CHANGING, Shape, mean_level, peak_level, steps_of


def levels_of(load):
    return [(step.name, step.start_ratio, step.end_ratio, step.from_level, step.to_level) for step in load.steps]


def test_a_staircase_of_a_hundred_users_is_that_of_the_article():
    steps = ClosedLoop(concurrency=100, profile="staircase").steps
    assert [step.to_level for step in steps] == [5, 10, 20, 50, 100]
    assert all(step.is_level for step in steps)


def test_a_staircase_takes_levels_of_its_own():
    load = ClosedLoop(profile="staircase", shape=Shape(levels="1/2/4/8"))
    assert [step.to_level for step in load.steps] == [1, 2, 4, 8]
    assert load.peak_users == 8


def test_a_ramp_rises_and_then_holds():
    load = OpenLoop(rate_rps=100, profile="ramp", shape=Shape(start_level=20, rise_ratio=0.4))
    assert levels_of(load) == [("ramp", 0.0, 0.4, 20.0, 100), ("hold", 0.4, 1.0, 100, 100)]
    assert [step.is_level for step in load.steps] == [False, True]


def test_a_spike_stands_in_the_middle():
    load = OpenLoop(rate_rps=10, profile="spike", shape=Shape(spike_factor=4, spike_ratio=0.5))
    assert levels_of(load) == [("before", 0, 0.25, 10, 10), ("spike", 0.25, 0.75, 40, 40), ("after", 0.75, 1, 10, 10)]
    assert (peak_level(load.steps), mean_level(load.steps)) == (40, 25)


@given(st.sampled_from(CHANGING), st.floats(0.5, 1000), st.floats(0.01, 0.9), st.floats(0.0, 900.0))
def test_steps_follow_each_other_without_a_gap_from_the_start_to_the_end(profile, level, ratio, start):
    steps = steps_of(profile, level, Shape(rise_ratio=ratio, spike_ratio=ratio, start_level=start))
    assert (steps[0].start_ratio, steps[-1].end_ratio) == (0.0, 1.0)
    assert all(before.end_ratio == after.start_ratio for before, after in itertools.pairwise(steps))
    assert all(step.start_ratio < step.end_ratio for step in steps)


@pytest.mark.parametrize("levels", ["", "5", "5/0/3", "5/x", "5,10", "5/inf", "1/2/nan"])
def test_levels_that_are_none_are_quoted_with_what_is_allowed(levels):
    with pytest.raises(ConfigError, match=r"shape\.levels is .* two or more numbers above 0 with / between them"):
        Shape(levels=levels)


def test_a_smoke_test_is_one_user_in_a_closed_loop():
    assert ClosedLoop(profile="smoke").steps[0].to_level == 1
    with pytest.raises(ConfigError, match="a smoke test has one user; the load's level is 4"):
        ClosedLoop(concurrency=4, profile="smoke")
    with pytest.raises(ConfigError, match="one user in a closed loop"):
        OpenLoop(profile="smoke")


def test_a_soak_is_seven_to_eight_tenths_of_the_stable_load():
    for users in (14, 15, 16):
        assert ClosedLoop(concurrency=users, profile="soak", shape=Shape(stable=20.0)).level == users
    for users in (13, 17):
        with pytest.raises(ConfigError, match=r"0\.7 to 0\.8 of the stable load, 14 to 16"):
            ClosedLoop(concurrency=users, profile="soak", shape=Shape(stable=20.0))
    with pytest.raises(ConfigError, match="needs the load that was stable before"):
        OpenLoop(profile="soak")


def test_a_soak_of_few_users_takes_the_whole_number_on_either_side():
    assert [ClosedLoop(concurrency=users, profile="soak", shape=Shape(stable=2.0)).level for users in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    "load",
    [
        ClosedLoop(concurrency=100, profile="staircase", shape=Shape(levels="1/2/3"), generators=3),
        OpenLoop(rate_rps=50, arrivals="bursty", profile="spike"),
    ],
)
def test_a_load_with_a_profile_comes_back_from_what_it_is_written_as(load):
    assert load_from_nested(load_to_nested(load)) == load


def test_more_generators_than_users_are_refused():
    with pytest.raises(ConfigError, match="generators is 3 with 2 users"):
        ClosedLoop(concurrency=2, generators=3)
    with pytest.raises(ConfigError, match="generators is 3 with max_connections 2"):
        OpenLoop(max_connections=2, generators=3)
