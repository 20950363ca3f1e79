"""Is a successor there at once after one death, later after several, and is a loop told exactly?"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.restarts import FIRST_PAUSE_NS, LONGEST_PAUSE_NS, LOOP_DEATHS, WINDOW_NS, Restarts


def test_pauses_double_and_the_fifth_death_within_a_minute_is_a_loop():
    restarts = Restarts()
    story = [(restarts.died(at_ns), restarts.is_looping(at_ns)) for at_ns in (0, 10, 20, 30, 40)]
    assert story == [(0, False), *[(FIRST_PAUSE_NS << n, False) for n in range(3)], (FIRST_PAUSE_NS << 3, True)]
    assert (restarts.is_looping(WINDOW_NS - 1), restarts.is_looping(WINDOW_NS)) == (True, False)


def test_deaths_long_ago_count_no_more():
    restarts = Restarts()
    assert {restarts.died(number * WINDOW_NS) for number in range(20)} == {0}


@given(gaps_ns=st.lists(st.integers(0, WINDOW_NS // 2), min_size=1, max_size=60))
def test_a_loop_is_told_exactly_whenever_the_deaths_were(gaps_ns):
    restarts = Restarts()
    deaths_ns = list(itertools.accumulate(gaps_ns))
    for number, now_ns in enumerate(deaths_ns, 1):
        pause_ns = restarts.died(now_ns)
        recent = sum(1 for at_ns in deaths_ns[:number] if now_ns - at_ns < WINDOW_NS)
        assert restarts.is_looping(now_ns) == (recent >= LOOP_DEATHS)
        assert (pause_ns == 0) == (recent == 1)
        assert pause_ns <= LONGEST_PAUSE_NS


@given(lives_ns=st.lists(st.integers(0, NS_PER_S), min_size=30, max_size=30))
def test_what_dies_soon_after_each_start_never_takes_a_core(lives_ns):
    """Thirty starts of something that lives for less than a second take minutes, not milliseconds."""
    restarts, now_ns = Restarts(), 0
    for life_ns in lives_ns:
        now_ns += life_ns
        now_ns += restarts.died(now_ns)
    assert now_ns > 2 * WINDOW_NS
