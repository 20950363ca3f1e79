"""Does every value come back from its way as it was?"""

import threading

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from perfkit.serving.server.elsewhere.messages import DONE, Reply, read_reply
from perfkit.serving.server.elsewhere.packing import pack, unpack

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(VALUES)
def test_plain_values_come_back_with_their_types(value):
    came = unpack(pack(value))
    assert (came, type(came)) == (value, type(value))


KINDS = [
    arrays.floating_dtypes,
    arrays.integer_dtypes,
    arrays.unsigned_integer_dtypes,
    arrays.complex_number_dtypes,
    arrays.datetime64_dtypes,
]
DTYPES = st.one_of(arrays.boolean_dtypes(), *(kind(endianness="=") for kind in KINDS))


@given(arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays_come_back_whole_and_may_be_changed(array):
    came = unpack(pack(array))
    assert (came.dtype, came.shape) == (array.dtype, array.shape)
    numpy.testing.assert_array_equal(came, array)
    assert came.flags.writeable


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_come_back_alone_and_inside_others(dtype):
    tensor = torch.ones((2, 3), dtype=dtype)
    alone, (inside, name) = unpack(pack(tensor)), unpack(pack([tensor, "x"]))
    assert torch.equal(alone, tensor)
    assert (torch.equal(inside, tensor), name) == (True, "x")


def test_half_a_surrogate_pair_survives():
    assert unpack(pack("\ud800")) == "\ud800"


def test_what_cannot_travel_says_so():
    with pytest.raises(TypeError):
        pack(threading.Lock())
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        pack(deep)


@given(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 5), st.binary())
def test_a_reply_comes_back_whole(numbers, body):
    reply = Reply(DONE, *numbers, body)
    assert read_reply(reply.to_bytes()) == reply
