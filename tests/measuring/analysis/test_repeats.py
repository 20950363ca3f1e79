"""Is a service that knows repeated payloads found out, and is noise not taken for one?"""

import numpy as np
import pytest

from perfkit.measuring.analysis.repeats import judge_repeats, repeated_ratio


@pytest.mark.parametrize(
    ("same", "verdict"),
    [
        ((115, 116, 114, 115, 117, 115), "repeats are faster"),
        ((101, 99, 100, 102, 98, 100), "repeats are not faster"),
        ((90, 91, 89, 90, 92, 90), "repeats are not faster"),
        ((108, 109, 107, 108, 108, 109), "repeats are not faster"),  # faster, but by less than the limit
        ((160, 70, 150, 80, 140, 90), "inconclusive"),
    ],
)
def test_the_limit_is_a_tenth_and_the_interval_decides(same, verdict):
    assert judge_repeats([100.0] * 6, list(map(float, same))).verdict == verdict


def test_the_ratio_is_that_of_pairs_so_that_a_drift_of_the_machine_cancels():
    different = [100.0, 80.0, 60.0, 50.0]
    found = judge_repeats(different, [1.2 * rate for rate in different])
    assert (found.ratio, found.low, found.high) == pytest.approx((1.2, 1.2, 1.2))


def test_alarms_on_equal_arms_are_rare_and_a_third_more_is_found():
    rng = np.random.default_rng(5)
    noise = rng.lognormal(0, 0.04, size=(2, 1000, 6))
    alarms = sum(judge_repeats(100 * a, 100 * b).verdict == "repeats are faster" for a, b in zip(*noise, strict=True))
    found = sum(judge_repeats(100 * a, 133 * b).verdict == "repeats are faster" for a, b in zip(*noise, strict=True))
    assert alarms == 0
    assert found >= 990


def test_the_share_of_repeated_payloads():
    assert repeated_ratio(100, 40) == pytest.approx(0.6)
    assert repeated_ratio(30, 40) == 0.0
    assert repeated_ratio(0, 40) is None
