"""Does the estimate follow the batches, and does it give way when it lets nobody through?"""

from __future__ import annotations

import random

from perfkit.serving.scheduling.pace import Pace

MS = 1_000_000


def paced(times_ns):
    pace = Pace()
    for batch_ns in times_ns:
        pace.took(batch_ns)
    return pace.expected_ns


def test_before_anything_was_learnt_nothing_is_expected():
    assert Pace().expected_ns == 0


def test_batches_that_all_take_the_same_take_just_that():
    assert paced([10 * MS] * 5) == 10 * MS


def test_it_follows_a_change_of_pace():
    assert abs(paced([10 * MS] * 50 + [30 * MS] * 100) - 30 * MS) < MS // 10


def test_where_batches_scatter_it_covers_nearly_all_of_them():
    chance = random.Random(5)
    pace, covered = Pace(), 0
    for _ in range(2_000):
        batch_ns = round(chance.gauss(10 * MS, 2 * MS))
        covered += batch_ns <= pace.expected_ns
        pace.took(batch_ns)
    assert covered >= 0.97 * 2_000


def test_one_that_lets_nobody_through_gives_way():
    pace = Pace()
    for batch_ns in (10 * MS, 10 * MS, 900 * MS):
        pace.took(batch_ns)
    drops = 0
    while pace.expected_ns > 100 * MS:
        pace.dropped_all()
        drops += 1
    assert 0 < drops <= 20
    for _ in range(40):
        pace.took(10 * MS)
    assert pace.expected_ns < 12 * MS
