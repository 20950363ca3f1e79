"""Does the batch cap find what fits in a few calls, never reach 0, and come back when there is room again?"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.batch_cap import FIRST_PAUSE_S, LONGEST_PAUSE_S, BatchCap

PAUSE_NS = round(FIRST_PAUSE_S * NS_PER_S)
LONGEST_NS = round(LONGEST_PAUSE_S * NS_PER_S)


def call(cap, fits, now_ns, waiting=1024):
    """One full call at the present cap; whether it fitted."""
    size = min(cap.limit, waiting)
    if size > fits:
        cap.ran_out(size, now_ns)
        return False
    cap.fitted(size, now_ns)
    return True


def calls_until_it_fits(cap, fits, now_ns):
    for number in range(1, 100):
        if call(cap, fits, now_ns):
            return number
    raise AssertionError("the cap does not converge")


@given(most=st.integers(1, 1024), fits=st.integers(1, 1024))
def test_the_cap_converges_within_ten_failed_calls_and_wastes_at_most_half(most, fits):
    cap = BatchCap(most)
    assert calls_until_it_fits(cap, fits, 0) - 1 <= 10
    assert 1 <= cap.limit <= most
    assert 2 * cap.limit >= min(fits, most)  # exactly half where one more than fits was halved: 87 to 43 where 86 fit


@given(most=st.integers(1, 64), deeds=st.lists(st.tuples(st.booleans(), st.integers(1, 64), st.integers(0, 20))))
def test_whatever_happens_the_cap_stays_between_one_and_what_was_set(most, deeds):
    cap, now_ns = BatchCap(most), 0
    for is_out, size, later_s in deeds:
        now_ns += later_s * NS_PER_S
        before = cap.limit
        (cap.ran_out if is_out else cap.fitted)(min(size, most), now_ns)
        assert 1 <= cap.limit <= most
        assert cap.limit <= before if is_out else before <= cap.limit <= 2 * before


@given(most=st.integers(2, 1024), fits=st.integers(1, 1024))
def test_when_there_is_room_again_the_cap_comes_back_to_what_was_set(most, fits):
    cap = BatchCap(most)
    calls_until_it_fits(cap, fits, 0)
    now_ns = 0
    for _ in range(12):
        now_ns += PAUSE_NS
        assert call(cap, most, now_ns)
        assert call(cap, most, now_ns)
    assert (cap.limit, cap.is_settled) == (most, True)


def test_probes_that_fail_come_ever_more_seldom():
    cap, fits, probes_ns = BatchCap(16), 8, []
    calls_until_it_fits(cap, fits, 0)
    for now_s in range(4 * round(LONGEST_PAUSE_S)):
        if not call(cap, fits, now_s * NS_PER_S):
            probes_ns.append(now_s * NS_PER_S)
    pauses = [later - earlier for earlier, later in itertools.pairwise(probes_ns)]
    assert all(b >= a for a, b in itertools.pairwise(pauses))
    assert (pauses[0] >= 2 * PAUSE_NS, pauses[-1] >= LONGEST_NS, len(probes_ns) < 10) == (True, True, True)


def test_a_call_smaller_than_the_cap_proves_nothing():
    cap = BatchCap(16)
    cap.ran_out(16, 0)
    for _ in range(100):
        cap.fitted(7, 100 * LONGEST_NS)
    assert (cap.limit, cap.is_settled) == (8, False)
