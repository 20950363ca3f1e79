"""Are quantiles of lateness right to the microsecond?"""

import math

from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.load.lateness import Lateness


@given(st.lists(st.integers(0, 999_000_000), min_size=1, max_size=50), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_quantile_is_the_ordered_delay_to_the_microsecond(delays_ns, ratio):
    lateness = Lateness()
    for delay_ns in delays_ns:
        lateness.add(delay_ns)
    exact_s = sorted(delays_ns)[math.ceil(ratio * len(delays_ns)) - 1] / 1e9
    assert exact_s <= lateness.quantile_s(ratio) <= exact_s + 1e-6
    assert lateness.max_s == max(delays_ns) / 1e9


def test_without_requests_lateness_is_absent():
    assert (Lateness().quantile_s(0.5), Lateness().max_s) == (None, None)


def test_a_delay_beyond_the_last_bucket_keeps_its_maximum():
    lateness = Lateness()
    lateness.add(3_000_000_000)
    assert lateness.max_s == 3.0
