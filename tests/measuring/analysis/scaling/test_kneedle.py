"""Kneedle's traps: a line, the range of the scan, the first of several bends, noise."""

import pytest

from perfkit.measuring.analysis.scaling.curve import curve_of
from perfkit.measuring.analysis.scaling.kneedle import kneedle

AMDAHL = (10.0, 0.1, 0.0)


def alone(points):
    """What the package itself answers over the whole range."""
    return kneedle(curve_of(points))[0]


def test_a_line_has_no_knee(curve):
    assert "the curve is a line" in kneedle(curve_of(curve({n: 7.0 * n for n in range(1, 12)}))).reason


def test_the_answer_of_one_range_moves_with_it(curve, law):
    answers = [alone(curve({n: law(n, *AMDAHL) for n in range(1, most + 1)})) for most in (16, 32, 64)]
    assert answers == sorted(set(answers))


def test_the_interval_holds_the_answers_of_a_scan_that_ended_earlier(curve, law):
    rates = {n: law(n, *AMDAHL) for n in (1, 2, 4, 8, 16, 32, 64, 128)}
    shorter = [alone(curve(dict(list(rates.items())[:count]))) for count in (6, 7)]
    _, low, high = kneedle(curve_of(curve(rates)))
    assert low < high
    assert all(low <= one <= high for one in shorter)


def test_of_two_bends_the_sharper_one_counts_and_the_interval_holds_both(curve):
    steps = {1: 10.0, 2: 20.0, 3: 30.0, 4: 30.5, 5: 31.0, 6: 31.5, 7: 60.0, 8: 88.0, 9: 88.0, 10: 88.0, 11: 88.0}
    value, low, high = kneedle(curve_of(curve(steps)))
    assert (value, low, high) == (8.0, 3.0, 8.0)


def test_a_bend_smaller_than_the_noise_is_none(curve):
    bent = {n: 10.0 * n + (15.0 if n == 4 else 0.0) for n in range(1, 9)}
    assert kneedle(curve_of(curve(bent, half=0.001))) == (4.0, 4.0, 4.0)
    assert "noise" in kneedle(curve_of(curve(bent, half=0.3))).reason


@pytest.mark.parametrize("rates", [{1: 5.0, 2: 5.0, 4: 5.0}, {1: 5.0, 2: 4.0}])
def test_a_flat_or_tiny_curve_is_refused(curve, rates):
    assert kneedle(curve_of(curve(rates))).reason
