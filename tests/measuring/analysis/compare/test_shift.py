"""Is the shift the Hodges-Lehmann estimate, and does its interval cover what it says?"""

import math

import numpy as np
import pytest

from perfkit.measuring.analysis.compare.shift import least_pairs, noise_floor_ratio, paired_shift, unpaired_shift

A = np.array([100.0, 102.0, 98.0, 101.0, 99.0, 100.5, 97.0])


def test_a_constant_factor_is_found_exactly_in_pairs():
    shift = paired_shift(A, 0.95 * A)
    assert (shift.value_ratio, shift.low_ratio, shift.high_ratio) == pytest.approx((-0.05,) * 3)
    assert (shift.runs_a, shift.runs_b, shift.is_paired, shift.excludes_zero) == (7, 7, True, True)
    assert shift.p_value == pytest.approx(2 / 2**7)


def test_the_estimate_is_the_median_of_the_walsh_averages():
    differences = np.array([0.01, 0.05, 0.02, 0.40, 0.03, 0.00])
    averages = [(x + y) / 2 for place, x in enumerate(differences) for y in differences[place:]]
    shift = paired_shift(np.ones(6), np.exp(differences))
    assert math.log1p(shift.value_ratio) == pytest.approx(np.median(averages))


def test_without_pairs_it_is_the_median_of_all_differences():
    b = np.array([110.0, 105.0, 120.0, 107.0, 109.0])
    shift = unpaired_shift(A, b)
    assert math.log1p(shift.value_ratio) == pytest.approx(np.median([np.log(y / x) for x in A for y in b]))
    assert (shift.runs_a, shift.runs_b, shift.is_paired) == (7, 5, False)


def test_there_and_back_is_the_same_way():
    b = A[::-1] * 1.1
    there, back = paired_shift(A, b), paired_shift(b, A)
    assert (1 + there.value_ratio) * (1 + back.value_ratio) == pytest.approx(1)
    assert there.p_value == pytest.approx(back.p_value)


def test_so_few_runs_have_no_interval():
    assert (least_pairs(0.05), least_pairs(0.05 / 3)) == (6, 7)
    few = paired_shift(A[:5], A[:5] * 2)
    assert (few.low_ratio, few.high_ratio, few.excludes_zero) == (None, None, False)
    assert unpaired_shift(A[:3], A[:3] * 2).low_ratio is None
    assert unpaired_shift(A[:4], A[:4] * 2).excludes_zero


def test_a_wild_run_moves_the_shift_little():
    wild = A.copy()
    wild[0] = 1.0
    assert abs(paired_shift(A, wild).value_ratio) < 0.03


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_ten_runs_a_side_covers_the_truth_in_95_of_100(paired):
    """A plain percentile interval covers about 90."""
    draws = np.random.default_rng(1)
    estimate = paired_shift if paired else unpaired_shift
    covered = 0
    for _ in range(120):
        a, b = np.exp(draws.normal(0, 0.03, (2, 10)))
        shift = estimate(a, 1.1 * b)
        covered += shift.low_ratio <= 0.1 <= shift.high_ratio
    assert covered / 120 >= 0.93


def test_the_noise_floor_is_how_far_two_sets_of_the_same_runs_lie_apart():
    draws = np.random.default_rng(2)
    floors = [noise_floor_ratio(np.exp(draws.normal(0, 0.02, 20))) for _ in range(20)]
    assert np.mean(floors) == pytest.approx(0.02 * math.sqrt(2 / 20), rel=0.2)
    assert noise_floor_ratio(np.full(5, 7.0)) == pytest.approx(0)
