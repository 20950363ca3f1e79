"""Does every call fit a bucket, as small a one as there is, and does padding change no row?"""

import torch
from hypothesis import given
from hypothesis import strategies as st

from perfkit.serving.execution.buckets import Grid, lengths_up_to, sizes_up_to, with_rows
from perfkit.serving.execution.network import Bucket


@given(st.integers(1, 1024))
def test_every_number_of_rows_has_a_size_that_is_less_than_twice_as_large(most):
    sizes = sizes_up_to(most)
    assert sizes == tuple(sorted(set(sizes)))
    assert sizes[-1] == most
    for rows in range(1, most + 1):
        assert rows <= next(size for size in sizes if size >= rows) < 2 * rows


def test_sizes_are_the_powers_of_two_and_the_most():
    assert [sizes_up_to(most) for most in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]


def test_the_longest_row_always_has_a_length():
    assert lengths_up_to(256, (16, 64, 1024)) == (16, 64, 256)
    assert lengths_up_to(0, (16, 64)) == (0,)


def test_a_level_of_any_shape_is_proven_on_each_length_and_on_the_most_rows():
    assert Grid((1, 2, 4), (8, 16)).few() == [Bucket(1, 8), Bucket(1, 16), Bucket(4, 8)]
    assert Grid((1,), (0,)).few() == [Bucket(1, 0)]
    assert Grid((1, 2), (8, 16)).all() == [Bucket(1, 8), Bucket(1, 16), Bucket(2, 8), Bucket(2, 16)]


def test_missing_rows_are_copies_of_the_last_one_in_every_argument():
    ids, lengths = with_rows((torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])), 4)
    assert (ids.tolist(), lengths.tolist()) == ([[1, 2], [3, 0], [3, 0], [3, 0]], [2, 1, 1, 1])


def test_a_call_that_fits_is_passed_on_as_it_is():
    arguments = (torch.zeros(2, 3),)
    assert with_rows(arguments, 2) is arguments


def test_a_bucket_says_its_shape():
    assert [str(Bucket(4, 32)), str(Bucket(4, 0))] == ["4 x 32", "4"]
