"""Is the run found at which a history moved to another level, and none where it did not?"""

import numpy as np
import pytest

from perfkit.measuring.analysis.compare.change_points import find_change_points


def history(levels, seed, spread=0.02, runs=25):
    """Runs that scatter around one level after the other."""
    draws = np.random.default_rng(seed)
    return np.concatenate([level * np.exp(draws.normal(0, spread, runs)) for level in levels])


def test_a_step_is_found_where_it_is_with_its_size_and_interval():
    (point,) = find_change_points(history([100, 90], 1))
    assert point.index == pytest.approx(25, abs=1)
    assert (point.shift.runs_a, point.shift.runs_b) == (point.index, 50 - point.index)
    assert point.shift.value_ratio == pytest.approx(-0.1, abs=0.015)
    assert point.shift.low_ratio < -0.1 < point.shift.high_ratio < 0
    assert (point.before, point.after) == (pytest.approx(100, rel=0.02), pytest.approx(90, rel=0.02))
    assert point.p_value < 1e-6


def test_several_steps_are_found_also_across_windows():
    points = find_change_points(history([100, 115, 115, 100, 85], 2))
    assert [point.index for point in points] == pytest.approx([25, 75, 100], abs=1)


def test_a_small_early_step_is_not_lost_behind_a_large_later_one():
    points = find_change_points(history([100, 106, 300], 3))
    assert [point.index for point in points] == pytest.approx([25, 50], abs=2)


def test_a_step_below_what_matters_is_none():
    assert find_change_points(history([100, 102], 4, spread=0.001)) == ()
    assert len(find_change_points(history([100, 102], 4, spread=0.001), margin_ratio=0.01)) == 1


def test_a_single_wild_run_is_no_change_of_level():
    values = history([100, 100], 5)
    values[20] = 20.0
    assert find_change_points(values) == ()


def test_short_and_constant_histories_have_no_change():
    assert find_change_points([]) == ()
    assert find_change_points([1.0] * 7) == ()
    assert find_change_points([1.0] * 60) == ()
    (step,) = find_change_points([1.0] * 10 + [2.0] * 10)
    assert (step.index, step.shift.value_ratio) == (10, pytest.approx(1.0))


def test_histories_without_a_change_seldom_show_one_and_small_ones_are_found():
    still = sum(bool(find_change_points(history([100, 100], seed))) for seed in range(30))
    moved = [find_change_points(history([100, 105], seed)) for seed in range(10)]
    assert still <= 2
    assert sum(len(points) == 1 and abs(points[0].index - 25) <= 2 for points in moved) >= 9
