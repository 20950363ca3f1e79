"""What a preset may add: how a call falls into pieces, and what a contradiction is told."""

import pytest

from perfkit.errors import ConfigError
from perfkit.serving.devices.simulated.parts import LaunchParts, MemoryParts


def test_by_default_a_call_is_one_piece_that_costs_nothing_to_launch():
    assert (LaunchParts().pieces(), LaunchParts().is_free) == ([(0.0, 1.0)], True)


def test_each_piece_is_launched_by_itself_and_takes_its_share_of_the_kernels():
    parts = LaunchParts(kernels=10, launch_s=0.001, chunks=3)
    assert parts.pieces() == [
        (pytest.approx(0.003), 0.3),
        (pytest.approx(0.003), 0.3),
        (pytest.approx(0.004), 0.4),
    ]


def test_a_graph_is_launched_once_for_all_its_pieces():
    parts = LaunchParts(kernels=4, launch_s=0.001, chunks=2, graph_launch_s=0.0001)
    assert parts.pieces() == [(0.0001, 0.5), (0.0, 0.5)]


def test_more_pieces_than_kernels_are_refused():
    with pytest.raises(ConfigError, match="chunks is 3 with kernels = 2; give at most one a kernel"):
        LaunchParts(kernels=2, chunks=3)


def test_a_call_holds_its_own_block_and_one_for_each_request():
    parts = MemoryParts(call_bytes=100, request_bytes=10)
    assert (parts.call_blocks(3), MemoryParts().call_blocks(3)) == ([100, 10, 10, 10], [])
