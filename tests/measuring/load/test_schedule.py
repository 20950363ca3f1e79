"""Is the schedule what it says: complete, seeded, and of the stated shape?"""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.mixes import PlacedSet, payload_order
from perfkit.measuring.load.schedule import arrival_offsets, first_thoughts_ns, think_times_ns
from perfkit.measuring.load.shape import Shape
from perfkit.measuring.load.share import Share

ONE = Share()


def only(count):
    """One set of so many bodies."""
    return [PlacedSet(name="", first=0, count=count, weight=1.0, lane=None)]


def test_constant_arrivals_are_equally_spaced_and_end_before_the_end():
    load = OpenLoop(rate_rps=4, arrivals="constant")
    assert arrival_offsets(load, 1.1, 0).tolist() == [250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
    assert arrival_offsets(load, 1.0, 0).tolist() == [250_000_000, 500_000_000, 750_000_000]


@given(st.floats(1, 500), st.floats(0.1, 5), st.integers(0, 1000))
def test_poisson_arrivals_ascend_within_the_phase_and_repeat_with_the_seed(rate_rps, seconds, seed):
    load = OpenLoop(rate_rps=rate_rps)
    offsets = arrival_offsets(load, seconds, seed).tolist()
    assert offsets == sorted(offsets)
    assert all(0 <= offset < seconds * 1e9 for offset in offsets)
    assert offsets == arrival_offsets(load, seconds, seed).tolist()


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential():
    offsets = arrival_offsets(OpenLoop(rate_rps=1000), 50, 7).tolist()
    gaps = [after - before for before, after in itertools.pairwise(offsets)]
    mean_ns = sum(gaps) / len(gaps)
    deviation_ns = math.sqrt(sum((gap - mean_ns) ** 2 for gap in gaps) / len(gaps))
    # Five standard errors of 50,000 draws: sqrt(1/n) for the mean, sqrt(2/n) for the deviation.
    assert abs(mean_ns / 1e6 - 1) < 5 * math.sqrt(1 / len(gaps))
    assert abs(deviation_ns / mean_ns - 1) < 5 * math.sqrt(2 / len(gaps))


def counts_in(offsets, edges_s):
    return [sum(start * 1e9 <= offset < end * 1e9 for offset in offsets) for start, end in itertools.pairwise(edges_s)]


def test_equal_gaps_on_a_ramp_follow_the_summed_rate_exactly():
    load = OpenLoop(rate_rps=8, arrivals="constant", profile="ramp", shape=Shape(rise_ratio=1.0))
    # From 0 to 8 req/s in 4 s, t seconds have t^2 arrivals: the k-th is due at sqrt(k).
    offsets = arrival_offsets(load, 4.0, 0).tolist()
    assert offsets == [round(math.sqrt(number) * 1e9) for number in range(1, 16)]


def test_poisson_arrivals_of_a_staircase_have_the_rate_of_each_step():
    load = OpenLoop(rate_rps=1, profile="staircase", shape=Shape(levels="50/400/100"))
    counts = counts_in(arrival_offsets(load, 90.0, 3), [0, 30, 60, 90])
    for count, rate in zip(counts, (50, 400, 100), strict=True):
        assert abs(count - 30 * rate) < 5 * math.sqrt(30 * rate)


@given(st.sampled_from(["staircase", "ramp", "spike"]), st.sampled_from(["poisson", "bursty"]), st.integers(0, 50))
def test_arrivals_of_every_profile_ascend_and_repeat_with_the_seed(profile, arrivals, seed):
    load = OpenLoop(rate_rps=60, profile=profile, arrivals=arrivals)
    offsets = arrival_offsets(load, 5.0, seed).tolist()
    assert offsets == sorted(offsets) == arrival_offsets(load, 5.0, seed).tolist()
    assert all(0 <= offset < 5e9 for offset in offsets)


def test_different_seeds_give_different_arrivals():
    load = OpenLoop(rate_rps=100)
    assert arrival_offsets(load, 1, 1) != arrival_offsets(load, 1, 2)


@given(st.integers(1, 5000), st.integers(0, 100))
def test_payloads_come_in_whole_shuffles_so_that_each_is_used_equally_often(count, seed):
    order = payload_order(only(count), seed).tolist()
    assert len(order) >= 4096
    assert len(order) % count == 0
    assert all(sorted(order[start : start + count]) == list(range(count)) for start in range(0, len(order), count))


def test_payloads_do_not_repeat_in_the_same_order():
    order = payload_order(only(50), 0).tolist()
    assert order[:50] != order[50:100]


def test_think_times_are_constant_or_exponential_with_the_mean_asked_for():
    constant = think_times_ns(ClosedLoop(think_time_s=0.25), ONE)
    assert list(itertools.islice(constant, 3)) == [250_000_000] * 3
    drawn = list(itertools.islice(think_times_ns(ClosedLoop(think_time_s=0.25, think="exponential"), ONE), 20_000))
    assert abs(sum(drawn) / len(drawn) / 250_000_000 - 1) < 5 * math.sqrt(1 / len(drawn))


def test_users_without_think_time_all_start_at_once_and_others_within_one_pause():
    assert first_thoughts_ns(ClosedLoop(concurrency=3), ONE) == [0, 0, 0]
    spread = first_thoughts_ns(ClosedLoop(concurrency=100, think_time_s=1), ONE)
    assert len(set(spread)) == 100
    assert 0 <= min(spread) < max(spread) <= 1_000_000_000
