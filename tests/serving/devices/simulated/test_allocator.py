"""The caching allocator: sizes by hand, and books that balance whatever is asked of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.devices.simulated.allocator import MIB, CachingAllocator, segment_for


@pytest.mark.parametrize(
    ("nbytes", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ],
)
def test_a_segment_is_small_middle_or_as_large_as_what_is_wanted(nbytes, segment):
    assert segment_for(nbytes) == segment


def figures(allocator):
    counts = allocator.counts
    return counts.allocated_bytes, counts.reserved_bytes, counts.inactive_split_bytes, counts.segments


def test_blocks_are_rounded_and_cut_from_segments_and_the_rest_serves_the_next():
    allocator = CachingAllocator(100 * MIB)
    assert allocator.take(100, "a").is_new_segment
    assert figures(allocator) == (512, 2 * MIB, 2 * MIB - 512, 1)
    assert not allocator.take(MIB, "a").is_new_segment
    assert allocator.take(5 * MIB, "a").is_new_segment  # a middle segment of 20 MiB
    assert not allocator.take(12 * MIB, "a").is_new_segment  # out of the 15 MiB that were left of it
    assert figures(allocator) == (512 + 18 * MIB, 22 * MIB, MIB - 512 + 3 * MIB, 2)
    assert allocator.take(4 * MIB, "a").is_new_segment


def test_a_rest_too_small_to_be_of_use_stays_with_its_block():
    allocator = CachingAllocator(100 * MIB)
    assert allocator.take(11 * MIB, "a").block.nbytes == 12 * MIB
    assert figures(allocator) == (12 * MIB, 12 * MIB, 0, 1)


def test_what_is_freed_joins_its_neighbours_and_serves_its_own_stream_only():
    allocator = CachingAllocator(100 * MIB)
    first, second, third = (allocator.take(5 * MIB, "a").block for _ in range(3))
    for block in (first, third, second):
        allocator.give_back(block)
    assert figures(allocator) == (0, 20 * MIB, 0, 1)
    assert allocator.take(20 * MIB, "b").is_new_segment
    assert not allocator.take(20 * MIB, "a").is_new_segment


def test_a_full_device_takes_back_what_other_streams_keep_and_counts_a_retry():
    allocator = CachingAllocator(40 * MIB)
    allocator.give_back(allocator.take(20 * MIB, "a").block)
    grant = allocator.take(30 * MIB, "b")
    assert (grant.is_new_segment, grant.segments_freed) == (True, 1)
    assert (allocator.counts.retries, allocator.counts.ooms, allocator.counts.reserved_bytes) == (1, 0, 30 * MIB)


def test_a_segment_with_one_held_block_is_of_no_use_to_another_stream():
    allocator = CachingAllocator(40 * MIB)
    small, large = allocator.take(2 * MIB, "a").block, allocator.take(15 * MIB, "a").block
    allocator.give_back(large)
    with pytest.raises(OutOfDeviceMemory, match="2097152 are held and 18874368 more are reserved but lie in pools"):
        allocator.take(30 * MIB, "b")
    assert (allocator.counts.retries, allocator.counts.ooms) == (1, 1)
    assert figures(allocator) == (2 * MIB, 20 * MIB, 18 * MIB, 1)
    allocator.give_back(small)
    assert allocator.take(30 * MIB, "b").segments_freed == 1


STEPS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "give", "flush"]), st.integers(1, 30 * MIB), st.integers(0, 2)),
    max_size=60,
)


@given(STEPS)
def test_the_books_balance_whatever_is_taken_and_given_back(steps):
    allocator, held = CachingAllocator(120 * MIB), []
    for what, nbytes, number in steps:
        if what == "take":
            try:
                held.append(allocator.take(nbytes, number).block)
                assert held[-1].nbytes >= nbytes
            except OutOfDeviceMemory:
                pass
        elif what == "give" and held:
            allocator.give_back(held.pop(nbytes % len(held)))
        elif what == "flush":
            allocator.flush()
        allocated, reserved, inactive, _ = figures(allocator)
        assert allocated == sum(block.nbytes for block in held)
        assert inactive <= reserved - allocated
        assert reserved <= 120 * MIB
    for block in held:
        allocator.give_back(block)
    allocator.flush()
    assert figures(allocator) == (0, 0, 0, 0)
