"""What does a request in tensors ask for? JSON, or JSON with the tensors' bytes behind it.

Everything that it declares is held against the model's signature and against what really came, before
a tensor is made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from perfkit.serving.server.call import MAX_ID_CHARACTERS, MalformedRequest, check_content
from perfkit.serving.server.connection import Request
from perfkit.serving.server.json_signature import signature_of
from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.oip.call import OCTETS, Asked, V2Call
from perfkit.serving.server.oip.metadata import most_inputs
from perfkit.serving.server.oip.tensors import (
    Array,
    as_array,
    bad_tensor,
    from_binary,
    from_json,
    item_bytes,
    to_binary,
)
from perfkit.serving.server.replies import JSON
from perfkit.serving.server.signature import ANY, DATATYPES, Signature, TensorSpec
from perfkit.serving.server.stages import describe

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

_TYPES = (JSON, OCTETS)
_LENGTH_HEADER = b"inference-header-content-length"
_MAX_DIGITS = 18  # of a number that fits 64 bits
_SEQUENCES = "requests are served one by one; leave it out"
_UNSERVED = {  # with what to do instead: an option that is dropped without a word would be a lie
    "shared_memory_region": "send data",
    "classification": "take the whole output",
    "timeout": "use the header Perfkit-Deadline",
    "priority": "use the header Perfkit-Lane",
    "sequence_id": _SEQUENCES,
    "sequence_start": _SEQUENCES,
    "sequence_end": _SEQUENCES,
}
_SHAPE = '{"inputs": [{"name", "shape", "datatype", "data"}]}'


def read_infer(service: Service, request: Request) -> V2Call:
    """The call that a request makes; raises MalformedRequest."""
    head, tail = _halves(request)
    signature = signature_of(service.model)
    document, tail = (_document(head), tail) if head else _raw(signature, tail)
    parameters = _parameters(document, "the request")
    request_id = document.get("id")
    if not (request_id is None or isinstance(request_id, str)) or len(request_id or "") > MAX_ID_CHARACTERS:
        raise _malformed(f"id must be a string of at most {MAX_ID_CHARACTERS} characters")
    asked = _asked(document, signature, is_binary=_flag(parameters, "binary_data_output"))
    call = V2Call(service.settings.model, request_id, signature, asked)
    arrays = _Reading(signature.inputs, tail, most_inputs(service)).arrays(document)
    call.payloads = _payloads(arrays, signature)
    return call


def _halves(request: Request) -> tuple[bytes | bytearray | memoryview, memoryview]:
    """The JSON and the bytes behind it."""
    check_content(request, _TYPES)
    body, text = request.body, request.headers.get(_LENGTH_HEADER)
    if text is None:
        if not body:
            raise _malformed(f"the body is empty; send {_SHAPE}")
        return body, memoryview(b"")
    length = int(text) if text.isdigit() and len(text) <= _MAX_DIGITS else -1
    if not 0 <= length <= len(body):
        came = text.decode("latin-1")[:80]
        raise _malformed(
            f"Inference-Header-Content-Length is {came!r}; it takes the size of the JSON, 0 to the body's {len(body)}"
        )
    whole = memoryview(body)
    return whole[:length], whole[length:]


def _document(head: bytes | bytearray | memoryview) -> dict[str, Any]:
    try:
        document = orjson.loads(head)
    except orjson.JSONDecodeError as error:
        raise MalformedRequest(400, "bad_json", f"the body is not JSON: {error}; send {_SHAPE}") from None
    if not isinstance(document, dict):
        raise _malformed(f"the body is JSON, but no object; send {_SHAPE}")
    return document


def _raw(signature: Signature, body: memoryview) -> tuple[dict[str, Any], memoryview]:
    """What a body of nothing but bytes means, as JSON and bytes: the one tensor of one input."""
    spec = signature.inputs[0]
    is_bytes = item_bytes(spec.datatype) is None
    if len(signature.inputs) != 1 or ANY in spec.shape or (is_bytes and spec.shape != (1,)):
        raise _malformed("a body of bytes alone is for models with one input of known size; send JSON before it")
    raw = memoryview(to_binary(as_array(spec.name, [body], "BYTES", (1,)), "BYTES")) if is_bytes else body
    shape = [1, *spec.shape]
    parameters = {"binary_data_size": len(raw)}
    tensor = {"name": spec.name, "datatype": spec.datatype, "shape": shape, "parameters": parameters}
    return {"inputs": [tensor], "parameters": {"binary_data_output": True}}, raw


def _parameters(holder: dict[str, Any], whose: str) -> dict[str, Any]:
    if "parameters" not in holder:
        return {}
    found = holder["parameters"]
    if not isinstance(found, dict) or not all(isinstance(value, (str, int, float)) for value in found.values()):
        raise _malformed(f"the parameters of {whose} must be an object of strings, numbers and booleans")
    for name in _UNSERVED.keys() & found.keys():
        raise _malformed(f"the parameter {name} of {whose} is not served here; {_UNSERVED[name]}")
    return found


def _flag(parameters: dict[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise _malformed(f"the parameter {name} must be true or false")
    return value


def _asked(document: dict[str, Any], signature: Signature, *, is_binary: bool) -> list[Asked]:
    """The outputs that the client wants; all of them when it names none."""
    wanted = _objects(document, "outputs") if "outputs" in document else []
    if not wanted:
        return [Asked(spec, is_binary) for spec in signature.outputs]
    specs = _by_name(signature.outputs, wanted, "output")
    asked = []
    for one in wanted:
        parameters = _parameters(one, f"output {one['name']!r}")
        form = _flag(parameters, "binary_data") if "binary_data" in parameters else is_binary
        asked.append(Asked(specs[one["name"]], form))
    return asked


def _objects(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = document.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _malformed(f"{key} must be a list of objects; send {_SHAPE}")
    return found


def _by_name(specs: tuple[TensorSpec, ...], given: list[dict[str, Any]], kind: str) -> dict[str, TensorSpec]:
    """The specs by name, after a check that each given tensor is one of them, and none comes twice."""
    known = {spec.name: spec for spec in specs}
    seen: set[str] = set()
    for one in given:
        name = one.get("name")
        if not isinstance(name, str) or name not in known:
            raise _malformed(f"unknown {kind} {name!r}; the model has {', '.join(known)}")
        if name in seen:
            raise _malformed(f"the {kind} {name!r} comes twice; send each once")
        seen.add(name)
    return known


class _Reading:
    """One pass over the input tensors, in the order in which their bytes lie behind the JSON."""

    def __init__(self, specs: tuple[TensorSpec, ...], tail: memoryview, most: int) -> None:
        self._specs = specs
        self._tail = tail
        self._at = 0
        self._most = most

    def arrays(self, document: dict[str, Any]) -> dict[str, Array]:
        """Each input's array, all with the same number of inputs in front."""
        given = _objects(document, "inputs")
        specs = _by_name(self._specs, given, "input")
        if missing := specs.keys() - {one["name"] for one in given}:
            raise _malformed(f"the input {min(missing)!r} is missing; the model takes {', '.join(specs)}")
        arrays = {one["name"]: self._array(specs[one["name"]], one) for one in given}
        if self._at != len(self._tail):
            raise _malformed(f"{len(self._tail)} bytes follow the JSON; the inputs' binary_data_size are {self._at}")
        counts = {name: len(array) for name, array in arrays.items()}
        if len(set(counts.values())) != 1:
            raise _malformed(f"the inputs disagree in their first dimension: {counts}")
        return arrays

    def _array(self, spec: TensorSpec, given: dict[str, Any]) -> Array:
        datatype = given.get("datatype")
        if datatype != spec.datatype:
            known = "" if datatype in DATATYPES else f", which is none of {', '.join(DATATYPES)}"
            raise bad_tensor(spec.name, f"has the datatype {datatype!r}{known}; the model takes {spec.datatype}")
        shape = self._shape(spec, given.get("shape"))
        parameters = _parameters(given, f"input {spec.name!r}")
        if ("data" in given) == ("binary_data_size" in parameters):
            raise bad_tensor(spec.name, "needs either data or the parameter binary_data_size, and not both")
        if "data" not in given:
            return from_binary(spec.name, self._next(spec, parameters["binary_data_size"]), datatype, shape)
        return from_json(spec.name, given["data"], datatype, shape)

    def _shape(self, spec: TensorSpec, shape: Any) -> list[int]:
        if not isinstance(shape, list) or any(type(size) is not int for size in shape):
            raise bad_tensor(spec.name, f"has no list of whole numbers as its shape; {self._allowed(spec)}")
        fits = len(shape) == len(spec.shape) + 1 and 1 <= shape[0] <= self._most
        if not fits or any(
            size < 1 or want not in (size, ANY) for size, want in zip(shape[1:], spec.shape, strict=True)
        ):
            raise bad_tensor(spec.name, f"has the shape {shape}; {self._allowed(spec)}")
        return shape

    def _allowed(self, spec: TensorSpec) -> str:
        return f"the model takes {spec.wire_shape} (-1 = any size from 1), with at most {self._most} in front"

    def _next(self, spec: TensorSpec, size: Any) -> memoryview:
        left = len(self._tail) - self._at
        if type(size) is not int or not 0 <= size <= left:
            raise bad_tensor(spec.name, f"has the binary_data_size {size!r}; {left} bytes are left behind the JSON")
        self._at += size
        return self._tail[self._at - size : self._at]


def _payloads(arrays: dict[str, Array], signature: Signature) -> list[Any]:
    count = len(next(iter(arrays.values())))
    try:
        return [signature.to_payload({name: array[index] for name, array in arrays.items()}) for index in range(count)]
    except InputRefused as error:
        raise MalformedRequest(422, "input_refused", describe(error)) from None
    except Exception as error:  # the model's own code, on what a client sent
        text = f"the model cannot use the tensors: {type(error).__name__}: {describe(error)}"
        raise MalformedRequest(422, "input_refused", text) from error


def _malformed(message: str) -> MalformedRequest:
    return MalformedRequest(400, "bad_request", message)
