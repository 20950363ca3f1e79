"""Does every datatype survive the wire both ways, and is everything refused that does not fit its declaration?"""

from __future__ import annotations

import contextlib
import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from perfkit.serving.server.call import MalformedRequest
from perfkit.serving.server.oip import tensors
from perfkit.serving.server.signature import DATATYPES

NUMPY = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)


@st.composite
def any_tensor(draw):
    """A datatype and an array of it."""
    datatype, shape = draw(st.sampled_from(DATATYPES)), draw(SHAPES)
    if datatype == "BYTES":
        texts = draw(st.lists(st.text(), min_size=math.prod(shape), max_size=math.prod(shape)))
        array = np.empty(len(texts), dtype=object)
        array[:] = [text.encode() for text in texts]
        return datatype, array.reshape(shape)
    if datatype == "BF16":  # every value that has no bits in the lower half
        upper = draw(arrays.arrays("<u2", shape))
        return datatype, (upper.astype("<u4") << 16).view("<f4")
    return datatype, draw(arrays.arrays(NUMPY[datatype], shape))


def same(one, other):
    """Equal to the bit, NaN included."""
    if one.dtype == object:
        return one.shape == other.shape and one.tolist() == other.tolist()
    return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


@given(any_tensor())
def test_what_is_written_as_bytes_is_read_back_to_the_bit(tensor):
    datatype, array = tensor
    raw = memoryview(tensors.to_binary(array, datatype))
    assert same(tensors.from_binary("t", raw, datatype, array.shape), array)


@given(any_tensor(), st.booleans())
def test_what_is_written_as_json_is_read_back_flat_or_nested(tensor, is_nested):
    datatype, array = tensor
    if datatype == "BF16" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        return  # JSON has neither
    data = orjson.loads(b"[%b]" % tensors.to_json(array, datatype))
    if is_nested:
        data = np.array(data, dtype=object).reshape(array.shape).tolist()
    assert same(tensors.from_json("t", data, datatype, array.shape), array)


@given(st.binary(max_size=64), st.sampled_from(DATATYPES), SHAPES)
def test_bytes_of_any_kind_are_read_whole_or_refused(raw, datatype, shape):
    try:
        array = tensors.from_binary("t", memoryview(raw), datatype, shape)
    except MalformedRequest:
        return
    assert (array.shape, tensors.to_binary(array, datatype)) == (shape, raw)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(JSON_VALUES, st.sampled_from(DATATYPES), SHAPES)
def test_json_of_any_kind_is_read_or_refused(data, datatype, shape):
    with contextlib.suppress(MalformedRequest):
        assert tensors.from_json("t", data, datatype, shape).shape == shape


@pytest.mark.parametrize(
    ("data", "datatype", "shape", "message"),
    [
        (3, "FP32", [1], "has data that is no list; send the 1 elements of shape [1]"),
        ([1, 2], "FP32", [3], "has 2 elements in data; its shape [3] takes 3"),
        ([[1, 2], [3]], "FP32", [2, 2], "has lists in data that do not follow its shape [2, 2]"),
        ([[1, 2], 3], "FP32", [2, 2], "has lists in data that do not follow its shape [2, 2]"),
        ([[[1]]], "FP32", [1, 1], "holds something else than numbers, which FP32 takes"),
        (["1"], "FP32", [1], "holds something else than numbers, which FP32 takes"),
        ([True], "INT8", [1], "holds something else than whole numbers, which INT8 takes"),
        ([1.0], "INT64", [1], "holds something else than whole numbers, which INT64 takes"),
        ([None], "FP64", [1], "holds something else than numbers, which FP64 takes"),
        ([1], "BOOL", [1], "holds something else than true or false, which BOOL takes"),
        ([1], "BYTES", [1], "holds something else than strings, which BYTES takes"),
        ([256], "UINT8", [1], "holds a number that UINT8 cannot; each must lie from 0 to 255"),
        ([-1], "UINT64", [1], f"holds a number that UINT64 cannot; each must lie from 0 to {2**64 - 1}"),
        ([2**63], "INT64", [1], f"holds a number that INT64 cannot; each must lie from {-(2**63)} to {2**63 - 1}"),
        ([1e39], "FP32", [1], "holds a number that FP32 cannot; each must lie within ±3.40282e+38"),
        ([70000], "FP16", [1], "holds a number that FP16 cannot; each must lie within ±65504"),
        ([1.0], "BF16", [1], "has the datatype BF16 and its data in JSON; send BF16 as binary data"),
    ],
)
def test_json_that_does_not_fit_says_what_came_and_what_is_taken(data, datatype, shape, message):
    with pytest.raises(MalformedRequest) as refusal:
        tensors.from_json("t", data, datatype, shape)
    assert (refusal.value.status, str(refusal.value)) == (400, f"tensor 't' {message}")


@pytest.mark.parametrize(
    ("raw", "datatype", "shape", "message"),
    [
        (b"1234567", "FP32", [2], "has 7 bytes; FP32 of shape [2] takes 8"),
        (b"", "INT8", [2**40], f"has 0 bytes; INT8 of shape [{2**40}] takes {2**40}"),
        (b"\x02", "BOOL", [1], "holds a byte that is neither 0 nor 1, which BOOL takes"),
        (b"\x01\0\0\0", "BYTES", [1], "ends within element 0; shape [1] takes 1 elements"),
        (b"\0\0\0\0\xff\xff\xff\xff", "BYTES", [2], "ends within element 1; shape [2] takes 2 elements"),
        (b"\0\0\0\0abc", "BYTES", [1], "has 3 bytes after its 1 elements (shape [1])"),
        (b"\0" * 8, "BYTES", [2**40], f"has 8 bytes, too few for the {2**40} elements of its shape [{2**40}]"),
    ],
)
def test_bytes_that_do_not_fit_say_what_came_and_what_is_taken(raw, datatype, shape, message):
    with pytest.raises(MalformedRequest) as refusal:
        tensors.from_binary("t", memoryview(raw), datatype, shape)
    assert (refusal.value.status, str(refusal.value)) == (400, f"tensor 't' {message}")


@pytest.mark.parametrize(
    ("value", "datatype", "shape", "message"),
    [
        ([1, 2], "FP32", (3,), r"has the shape \[2\]; declared is \[3\]"),
        ([1.5], "INT32", (1,), "holds what INT32 cannot"),
        ([300], "UINT8", (1,), "holds what UINT8 cannot"),
        (["a", "b"], "BYTES", (3,), "reshape"),
    ],
)
def test_an_output_that_is_not_as_declared_is_the_models_error(value, datatype, shape, message):
    with pytest.raises(ValueError, match=message):
        tensors.as_array("o", value, datatype, shape)


def test_outputs_are_taken_as_lists_arrays_and_texts():
    assert tensors.as_array("o", [0.5], "FP32", (1,)).dtype == np.float32
    assert tensors.as_array("o", np.ones((1, 2)), "FP16", (1, 2)).dtype == np.float16
    assert tensors.as_array("o", ["ü", b"\xff"], "BYTES", (2,)).tolist() == ["ü".encode(), b"\xff"]
    with pytest.raises(UnicodeDecodeError):
        tensors.to_json(tensors.as_array("o", [b"\xff"], "BYTES", (1,)), "BYTES")
