"""Does the bucket let in exactly the agreed rate, whatever the arrivals do?"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.token_bucket import TokenBucket

SECOND = 1_000_000_000


def test_a_burst_passes_at_once_and_then_one_item_per_token():
    bucket = TokenBucket(rate_rps=10, burst=3)
    at_once = [bucket.take(1, SECOND) for _ in range(4)]
    assert at_once == [None, None, None, Rejected(reason="rate_limited", retry_after_s=0.1)]
    assert bucket.take(1, SECOND + SECOND // 10 - 1) is not None
    assert bucket.take(1, SECOND + SECOND // 10) is None
    assert bucket.take(1, SECOND + SECOND // 10) is not None


def test_a_long_pause_earns_no_more_than_one_burst():
    bucket = TokenBucket(rate_rps=10, burst=3)
    assert [bucket.take(1, 3600 * SECOND) is None for _ in range(4)] == [True, True, True, False]


def test_all_inputs_of_a_request_pass_or_none():
    bucket = TokenBucket(rate_rps=10, burst=4)
    assert bucket.take(3, SECOND) is None
    assert bucket.take(2, SECOND) == Rejected(reason="rate_limited", retry_after_s=0.1)
    assert bucket.take(1, SECOND) is None


def test_more_inputs_than_the_bucket_holds_pass_when_it_is_full_and_leave_a_debt():
    bucket = TokenBucket(rate_rps=10, burst=2)
    assert bucket.take(5, SECOND) is None
    assert bucket.take(1, SECOND) == Rejected(reason="rate_limited", retry_after_s=0.4)
    assert bucket.take(5, SECOND + 4 * SECOND // 10) == Rejected(reason="rate_limited", retry_after_s=0.1)


def test_tokens_of_a_request_that_was_turned_away_elsewhere_come_back():
    bucket = TokenBucket(rate_rps=1, burst=2)
    for _ in range(20):
        assert bucket.take(2, SECOND) is None
        bucket.give_back(2)


ARRIVALS = st.lists(st.tuples(st.integers(0, 400_000_000), st.integers(1, 6)), max_size=60)


@given(rate_rps=st.integers(1, 50), burst=st.integers(1, 5), arrivals=ARRIVALS)
def test_it_decides_as_a_bucket_that_counts_its_tokens_does(rate_rps, burst, arrivals):
    bucket = TokenBucket(rate_rps, burst)
    token_ns = -(-SECOND // rate_rps)
    tokens, now_ns = Fraction(burst), SECOND
    for pause_ns, count in arrivals:
        now_ns += pause_ns
        tokens = min(Fraction(burst), tokens + Fraction(pause_ns, token_ns))
        passes = tokens >= min(count, burst)
        rejected = bucket.take(count, now_ns)
        assert (rejected is None) == passes
        if passes:
            tokens -= count
        else:
            missing_ns = (min(count, burst) - tokens) * token_ns
            assert rejected.retry_after_s == float(missing_ns / SECOND)
