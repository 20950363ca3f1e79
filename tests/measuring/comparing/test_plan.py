"""Are the runs of a comparison in random ABBA blocks?"""

import pytest

from perfkit.errors import ConfigError


def arms(plan):
    return "".join(turn.arm for turn in plan.order)


def test_blocks_are_abba_or_baab_by_the_toss_of_a_seeded_coin(plan_of):
    orders = {arms(plan_of(pairs=10, seed=seed)) for seed in range(20)}
    blocks = {order[place : place + 4] for order in orders for place in range(0, 20, 4)}
    assert blocks == {"abba", "baab"}
    assert len(orders) > 10
    assert arms(plan_of(pairs=10, seed=3)) == arms(plan_of(pairs=10, seed=3))


def test_every_pair_has_one_run_of_each_side_next_to_each_other(plan_of):
    for pairs in (1, 2, 5):
        turns = plan_of(pairs=pairs).order
        assert [{turn.arm for turn in turns[2 * k : 2 * k + 2]} for k in range(pairs)] == [{"a", "b"}] * pairs
        assert [turn.pair for turn in turns] == [k for k in range(pairs) for _ in range(2)]


@pytest.mark.parametrize(("wrong", "says"), [({"pairs": 0}, "pairs is 0"), ({"pairs": -1}, "1 or more")])
def test_a_plan_without_sense_is_refused(plan_of, wrong, says):
    with pytest.raises(ConfigError, match=says):
        plan_of(**wrong)
