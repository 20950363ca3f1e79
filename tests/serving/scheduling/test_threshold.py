"""Which latencies count as slow, by a limit and by what is usual?"""

from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.scheduling.threshold import SlowThreshold

MS = 1_000_000


def judged(threshold, latencies):
    return [threshold.is_slow(latency) for latency in latencies]


def test_a_limit_holds_from_the_first_request():
    threshold = SlowThreshold(limit_ns=100 * MS, median_ratio=None)
    assert judged(threshold, [99 * MS, 100 * MS, 300 * MS]) == [False, True, True]


def test_a_multiple_of_the_median_judges_once_the_median_is_known():
    threshold = SlowThreshold(limit_ns=None, median_ratio=3.0)
    assert judged(threshold, [90 * MS] + [10 * MS] * 62 + [90 * MS]) == [False] * 64
    assert judged(threshold, [29 * MS, 30 * MS]) == [False, True]


def test_the_median_follows_the_load():
    threshold = SlowThreshold(limit_ns=None, median_ratio=2.0)
    judged(threshold, [10 * MS] * 512 + [50 * MS] * 512)
    assert threshold.present_ns == 100 * MS


def test_of_both_limits_the_lower_one_counts():
    threshold = SlowThreshold(limit_ns=25 * MS, median_ratio=10.0)
    judged(threshold, [1 * MS] * 64)
    assert threshold.present_ns == 10 * MS
    judged(threshold, [9 * MS] * 512)
    assert threshold.present_ns == 25 * MS


@given(st.lists(st.integers(1, 10**9), min_size=64, max_size=2000), st.floats(1.0, 50.0))
def test_the_threshold_is_the_multiple_of_a_latency_that_was_seen(latencies, ratio):
    threshold = SlowThreshold(limit_ns=None, median_ratio=ratio)
    judged(threshold, latencies)
    assert threshold.present_ns in {round(ratio * latency) for latency in latencies}
