"""Does the next request go where the least is in hand, and do equals take turns?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.scheduling.routing import least_loaded

LOADS = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@given(LOADS, st.integers(0, 100))
def test_nobody_has_less_in_hand_than_the_one_that_gets_it(loads, turn):
    assert loads[least_loaded(loads, turn)] == min(loads)


@given(st.integers(1, 8), st.integers(0, 100))
def test_idle_replicas_take_turns(count, turn):
    chosen = []
    for _ in range(2 * count):
        chosen.append(least_loaded([0] * count, turn))
        turn = chosen[-1] + 1
    assert chosen[:count] == chosen[count:]
    assert sorted(chosen[:count]) == list(range(count))


@given(st.lists(st.sampled_from(["in", "out"]), max_size=200), st.integers(1, 6), st.randoms())
def test_loads_stay_within_one_of_each_other_while_nothing_ends(events, count, chance):
    loads = [0] * count
    for _ in events:
        loads[least_loaded(loads, chance.randrange(100))] += 1
        assert max(loads) - min(loads) <= 1
