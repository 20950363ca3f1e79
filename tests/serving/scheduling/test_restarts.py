"""Is the first death answered at once, and does a loop of deaths neither take a core nor last for ever?"""

from hypothesis import given
from hypothesis import strategies as st

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.restarts import FIRST_PAUSE_NS, LONGEST_PAUSE_NS, LOOP_DEATHS, WINDOW_NS, Restarts


def test_the_pause_doubles_with_every_further_death_within_a_minute():
    restarts = Restarts()
    pauses = [restarts.died(at * NS_PER_S) for at in range(10)]
    doubled = [FIRST_PAUSE_NS << step for step in range(9)]
    assert pauses == [0, *(min(pause, LONGEST_PAUSE_NS) for pause in doubled)]


def test_after_a_minute_without_a_death_all_is_forgotten():
    restarts = Restarts()
    for _ in range(LOOP_DEATHS):
        restarts.died(0)
    assert restarts.is_looping(WINDOW_NS - 1)
    assert not restarts.is_looping(WINDOW_NS)
    assert restarts.died(WINDOW_NS) == 0


def test_four_deaths_are_no_loop_and_five_are():
    restarts = Restarts()
    seen = []
    for number in range(LOOP_DEATHS):
        restarts.died(number)
        seen.append(restarts.is_looping(number))
    assert seen == [False] * (LOOP_DEATHS - 1) + [True]


@given(st.lists(st.integers(0, 30 * NS_PER_S), max_size=200))
def test_however_it_dies_it_is_started_again_within_the_longest_pause_and_not_oftener_than_the_pauses_allow(lives_ns):
    restarts, now_ns, starts_ns = Restarts(), 0, []
    for life_ns in lives_ns:
        starts_ns.append(now_ns)
        now_ns += life_ns
        pause_ns = restarts.died(now_ns)
        assert 0 <= pause_ns <= LONGEST_PAUSE_NS
        now_ns += pause_ns
    for first in starts_ns:  # 0 + 0.1 + 0.2 + … + 6.4 s of pauses, then 10 s each: at most 13 starts fit a minute
        assert sum(first <= start < first + WINDOW_NS for start in starts_ns) <= 14
