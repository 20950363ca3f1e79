"""The early-stopping floors are those that MLPerf publishes."""

import pytest
from scipy.stats import binom

from perfkit.measuring.analysis.floors import floor_count

PUBLISHED = {
    0.99: {0.5: 11, 0.9: 64, 0.95: 130, 0.99: 662, 0.999: 6636},
    0.95: {0.9: 46, 0.95: 93, 0.99: 473, 0.999: 4742},
}


@pytest.mark.parametrize("confidence", PUBLISHED)
def test_floors_equal_the_published_ones(confidence):
    assert {p: floor_count(p, confidence) for p in PUBLISHED[confidence]} == PUBLISHED[confidence]


def test_the_floor_is_the_least_count_at_which_two_slower_requests_are_expected_with_confidence():
    n = floor_count(0.99)
    assert n == 473
    assert binom.cdf(1, n, 0.01) <= 0.05 < binom.cdf(1, n - 1, 0.01)
