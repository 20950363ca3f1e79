"""Are bursty arrivals as bursty as the formula says, at the mean rate asked for?"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.load.bursts import Bursts, burst_spans, counted_dispersion, dispersion_index
from perfkit.measuring.load.loops import OpenLoop
from perfkit.measuring.load.schedule import arrival_offsets


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0, 1))
def test_the_two_rates_average_to_the_mean_rate(burst_s, quiet_s, quiet_ratio):
    bursts = Bursts(burst_s=burst_s, quiet_s=quiet_s, quiet_ratio=quiet_ratio)
    share = burst_s / (burst_s + quiet_s)
    assert share * bursts.burst_factor + (1 - share) * bursts.quiet_factor == pytest.approx(1)


def test_plain_poisson_has_an_index_of_one_and_short_intervals_show_no_bursts():
    assert dispersion_index(Bursts(quiet_ratio=1.0), 100) == 1
    assert dispersion_index(Bursts(), 100, 1e-9) == pytest.approx(1)
    assert dispersion_index(Bursts(), 100, 1e6) == pytest.approx(dispersion_index(Bursts(), 100), rel=1e-5)


def test_an_on_off_process_has_the_index_of_the_textbook():
    # Interrupted Poisson at 100 req/s when on, one second on and one off: 1 + 2 l w2 / (w1 + w2)^2 = 1 + 2 * 100 / 4.
    assert dispersion_index(Bursts(burst_s=1.0, quiet_s=1.0, quiet_ratio=0.0), 50) == pytest.approx(51)


def test_drawn_schedules_have_the_index_of_the_formula():
    load = OpenLoop(rate_rps=100, arrivals="bursty", bursts=Bursts(burst_s=0.2, quiet_s=0.8, quiet_ratio=0.1))
    seconds = 4000.0
    offsets = arrival_offsets(load, seconds, 3)
    # Five standard errors: the mean's is sqrt(I / n), that of a variance over m intervals about sqrt(2 / m).
    assert abs(len(offsets) / (100 * seconds) - 1) < 5 * (dispersion_index(load.bursts, 100) / (100 * seconds)) ** 0.5
    expected = dispersion_index(load.bursts, 100, 1.0)
    assert expected > 10
    assert abs(counted_dispersion(offsets, seconds) / expected - 1) < 5 * (2 / seconds) ** 0.5


def test_the_states_alternate_up_to_the_end():
    spans = list(burst_spans(Bursts(), 60.0, random.Random("spans")))
    assert spans[-1][0] == 60.0
    ends = [end for end, _ in spans]
    assert ends == sorted(ends)
    assert {factor for _, factor in spans[::2]} != {factor for _, factor in spans[1::2]}


def test_a_schedule_too_short_to_count_says_nothing():
    assert counted_dispersion([1, 2, 3], 9.0) is None
