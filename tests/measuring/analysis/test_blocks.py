"""Blocks keep the order and never mix rounds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.analysis.blocks import Interval, block_edges, block_means, blocks_per_round, mean_interval


def test_blocks_are_shared_among_rounds_in_proportion_to_their_sizes():
    assert blocks_per_round([100, 100, 200], 20) == [5, 5, 10]
    assert blocks_per_round([1, 0, 99], 20) == [1, 0, 19]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=30), st.integers(1, 40))
def test_blocks_tile_the_series_and_never_span_two_rounds(sizes, count):
    edges = block_edges(sizes, count)
    assert edges[0] == 0
    assert edges[-1] == sum(sizes)
    assert (np.diff(edges) > 0).all()
    assert set(np.cumsum(sizes)) <= set(edges)


def test_a_block_mean_is_the_mean_of_its_block():
    edges = block_edges([4, 2], 3)
    assert list(edges) == [0, 2, 4, 6]
    assert list(block_means(np.array([1.0, 3.0, 5.0, 5.0, 0.0, 8.0]), edges)) == [2.0, 5.0, 4.0]


def test_the_interval_of_a_mean_is_students():
    found = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert found.value == 2.0
    assert np.isclose([found.low, found.high], [2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5]).all()
    assert mean_interval(np.array([5.0])) == Interval(value=5.0, low=None, high=None)
    assert mean_interval(np.array([])) == Interval(value=None, low=None, high=None)


def test_intervals_overlap_when_they_share_a_point_and_a_missing_end_is_unbounded():
    left, right = Interval(value=1.5, low=1.0, high=2.0), Interval(value=2.5, low=2.0, high=3.0)
    apart = Interval(value=9.0, low=8.0, high=None)
    assert left.overlaps(right)
    assert not left.overlaps(apart)
    assert apart.overlaps(Interval(value=99.0, low=90.0, high=100.0))
