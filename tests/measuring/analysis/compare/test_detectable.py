"""Does the smallest change that could be found agree with theory and with what is found?"""

import numpy as np
import pytest

from perfkit.measuring.analysis.compare.detectable import detectable_ratio, pairs_needed
from perfkit.measuring.analysis.compare.replicate import METRICS
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates


def test_without_a_threshold_it_is_the_known_rule_of_sixteen():
    assert pairs_needed(0.05, 0.01, 0.0) == pytest.approx(15.7 * (0.05 / 0.01) ** 2, rel=0.03)
    assert detectable_ratio(0.05 * (2 / 400) ** 0.5, 10**6, 0.0) == pytest.approx((15.7 / 400) ** 0.5 * 0.05, rel=0.02)


def test_a_change_up_to_the_threshold_is_found_by_no_number_of_pairs():
    assert pairs_needed(0.01, 0.03, 0.03) is None
    assert pairs_needed(0.02, 0.031, 0.03) > 300
    assert 5 < pairs_needed(0.02, 0.06, 0.03) < 12


def test_a_change_of_that_size_is_found_in_eight_of_ten_comparisons(replicates):
    rule, spread, pairs = Rule(metrics=METRICS[:1]), 0.02, 10
    typical = detectable_ratio(spread * (2 / pairs) ** 0.5, pairs - 1, rule.margin_ratio)
    factors = {"throughput_rps": 1 - typical}
    found = [
        compare_replicates(
            replicates(pairs, seed, spread), replicates(pairs, 1_000 + seed, spread, factors), True, rule
        )
        for seed in range(100)
    ]
    assert np.mean([one.verdict == "slower" for one in found]) == pytest.approx(0.8, abs=0.1)
    assert np.median([one.metrics[0].detectable_ratio for one in found]) == pytest.approx(typical, rel=0.25)
