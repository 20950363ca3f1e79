"""How does a tensor of the Open Inference Protocol look as JSON and as bytes? The whole table of datatypes.

Whatever comes is held against its declared shape and datatype exactly: nothing is cut off, wrapped
around, rounded to an integer or filled up. Imported at the first request in tensors, for numpy's sake.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from perfkit.serving.server.call import MalformedRequest

Array = NDArray[Any]

_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "BF16": np.dtype("<f4"),  # numpy has no type for it; on the wire it is the upper half of an FP32
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype("O"),
}
_LENGTH = struct.Struct("<I")  # in front of each element of a BYTES tensor
_HALF = np.dtype("<u2")
_HALF_BITS = 16
_IN_JSON: dict[str, frozenset[type]] = {  # by numpy's kind
    "b": frozenset((bool,)),
    "u": frozenset((int,)),
    "i": frozenset((int,)),
    "f": frozenset((int, float)),
    "O": frozenset((str,)),
}
_IN_WORDS = {"b": "true or false", "u": "whole numbers", "i": "whole numbers", "f": "numbers", "O": "strings"}


def item_bytes(datatype: str) -> int | None:
    """The size of an element on the wire; None for BYTES, whose elements have their own."""
    if datatype == "BYTES":
        return None
    return _HALF.itemsize if datatype == "BF16" else _DTYPES[datatype].itemsize


def from_json(name: str, data: Any, datatype: str, shape: Sequence[int]) -> Array:
    """An array from a tensor's `data`, flat or nested as the shape says; raises MalformedRequest."""
    if datatype == "BF16":
        raise bad_tensor(name, "has the datatype BF16 and its data in JSON; send BF16 as binary data")
    dtype = _DTYPES[datatype]
    flat = _flat(name, data, shape)
    if not _IN_JSON[dtype.kind].issuperset(map(type, flat)):
        raise bad_tensor(name, f"holds something else than {_IN_WORDS[dtype.kind]}, which {datatype} takes")
    if datatype == "BYTES":
        flat = [text.encode() for text in flat]
    return _numbers(name, flat, datatype).reshape(shape)


def _flat(name: str, data: Any, shape: Sequence[int]) -> list[Any]:
    count = math.prod(shape)
    if not isinstance(data, list):
        raise bad_tensor(name, f"has data that is no list; send the {count} elements of shape {list(shape)}")
    if list not in set(map(type, data)):
        if len(data) != count:
            raise bad_tensor(name, f"has {len(data)} elements in data; its shape {list(shape)} takes {count}")
        return data
    level: list[Any] = [data]
    for size in shape:
        if not all(type(part) is list and len(part) == size for part in level):
            raise bad_tensor(name, f"has lists in data that do not follow its shape {list(shape)}")
        level = list(itertools.chain.from_iterable(level))
    return level


def _numbers(name: str, flat: list[Any], datatype: str) -> Array:
    dtype = _DTYPES[datatype]
    if dtype.kind == "O":
        elements = np.empty(len(flat), dtype=object)
        elements[:] = flat
        return elements
    try:
        with np.errstate(over="ignore"):
            array = np.array(flat, dtype=dtype)
    except OverflowError:
        raise bad_tensor(name, f"holds a number that {datatype} cannot; {_range(dtype)}") from None
    if dtype.kind == "f" and not np.isfinite(array).all():  # JSON has only finite numbers
        raise bad_tensor(name, f"holds a number that {datatype} cannot; {_range(dtype)}")
    return array


def _range(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "f":
        return f"each must lie within ±{float(np.finfo(dtype).max):.6g}"
    info = np.iinfo(dtype)
    return f"each must lie from {info.min} to {info.max}"


def from_binary(name: str, raw: memoryview, datatype: str, shape: Sequence[int]) -> Array:
    """An array from a tensor's bytes, without a copy where that is possible; raises MalformedRequest."""
    if datatype == "BYTES":
        return _elements(name, raw, shape)
    wanted = math.prod(shape) * (item_bytes(datatype) or 0)
    if len(raw) != wanted:
        raise bad_tensor(name, f"has {len(raw)} bytes; {datatype} of shape {list(shape)} takes {wanted}")
    if datatype == "BF16":
        return (np.frombuffer(raw, _HALF).astype("<u4") << _HALF_BITS).view("<f4").reshape(shape)
    if datatype == "BOOL" and not set(raw.tobytes()) <= {0, 1}:
        raise bad_tensor(name, "holds a byte that is neither 0 nor 1, which BOOL takes")
    return np.frombuffer(raw, _DTYPES[datatype]).reshape(shape)


def _elements(name: str, raw: memoryview, shape: Sequence[int]) -> Array:
    count, at = math.prod(shape), 0
    if count * _LENGTH.size > len(raw):
        raise bad_tensor(name, f"has {len(raw)} bytes, too few for the {count} elements of its shape {list(shape)}")
    elements = np.empty(count, dtype=object)
    for index in range(count):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(raw, at)[0] if start <= len(raw) else start
        if at > len(raw):
            raise bad_tensor(name, f"ends within element {index}; shape {list(shape)} takes {count} elements")
        elements[index] = bytes(raw[start:at])
    if at != len(raw):
        raise bad_tensor(name, f"has {len(raw) - at} bytes after its {count} elements (shape {list(shape)})")
    return elements.reshape(shape)


def as_array(name: str, value: Any, datatype: str, shape: Sequence[int]) -> Array:
    """A model's output as the array that was declared; raises ValueError for anything else."""
    if datatype == "BYTES":
        array = np.empty(len(value), dtype=object)
        array[:] = [element.encode() if isinstance(element, str) else bytes(element) for element in value]
        array = array.reshape(shape)
    else:
        given = np.asarray(value)
        array = given.astype(_DTYPES[datatype], copy=False)
        if array.dtype.kind != "f" and not np.array_equal(array, given):
            raise ValueError(f"output {name!r} holds what {datatype} cannot")
    if array.shape != tuple(shape):
        raise ValueError(f"output {name!r} has the shape {list(array.shape)}; declared is {list(shape)}")
    return array


def to_json(array: Array, datatype: str) -> bytes:
    """The elements as JSON, separated by commas; raises ValueError for BYTES that are no text."""
    if datatype == "BYTES":
        return b",".join(orjson.dumps(element.decode()) for element in array.flat)
    flat = np.ascontiguousarray(array).reshape(-1)
    return orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]


def to_binary(array: Array, datatype: str) -> bytes:
    """The elements as they lie on the wire."""
    if datatype == "BYTES":
        return b"".join(_LENGTH.pack(len(element)) + element for element in array.flat)
    if datatype == "BF16":
        return (array.view("<u4") >> _HALF_BITS).astype(_HALF).tobytes()
    return array.tobytes()


def bad_tensor(name: str, what: str) -> MalformedRequest:
    """The refusal of a request for one of its tensors."""
    return MalformedRequest(400, "bad_tensor", f"tensor {name!r} {what}")
