"""How does a model's value travel between the server and a child process of its own?

Bytes, text and plain arrays travel as they lie in memory. Whatever else a model makes goes through the
serialiser that multiprocessing uses between a process and its children, and only between those two.
"""

from __future__ import annotations

import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar

_BYTES, _TEXT, _ARRAY, _OTHER = b"b", b"t", b"a", b"o"
_PROTOCOL = 5  # arrays inside other values are written in one piece


class _Packer(ForkingPickler):
    # Torch registers reducers that share memory through open files; a pipe between two processes needs plain values.
    _extra_reducers: ClassVar[dict[type, Any]] = {}


def pack(value: Any) -> bytes:
    """The value as bytes that `unpack` brings back; raises what the serialiser raises for what cannot travel."""
    if type(value) is bytes:
        return _BYTES + value
    if type(value) is str:
        return _TEXT + value.encode("utf-8", "surrogatepass")
    if _is_plain_array(value):
        return _write_array(value)
    return _OTHER + bytes(_Packer.dumps(value, _PROTOCOL))


def unpack(data: bytes) -> Any:
    """The value that was packed. An array is a copy of its own, which may be changed."""
    kind, rest = data[:1], memoryview(data)[1:]
    if kind == _BYTES:
        return bytes(rest)
    if kind == _TEXT:
        return str(rest, "utf-8", "surrogatepass")
    if kind == _ARRAY:
        return _read_array(data)
    return _Packer.loads(rest)


def _is_plain_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and value.dtype.kind in "biufc" and value.dtype.isnative


def _write_array(value: Any) -> bytes:
    head = f"{value.dtype.kind}{value.dtype.itemsize}|{','.join(map(str, value.shape))}|"
    cells: bytes = value.tobytes()
    return _ARRAY + head.encode() + cells


def _read_array(data: bytes) -> Any:
    import numpy

    after_type = data.index(b"|")
    after_shape = data.index(b"|", after_type + 1)
    shape = [int(part) for part in data[after_type + 1 : after_shape].split(b",") if part]
    cells = numpy.frombuffer(data, data[1:after_type].decode(), offset=after_shape + 1)
    return cells.reshape(shape).copy()
