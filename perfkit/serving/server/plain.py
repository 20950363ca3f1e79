"""How does `POST /predict` read a request, and how does it write the answer? Plain JSON, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from perfkit.serving.server.call import MAX_ID_CHARACTERS, MalformedRequest, check_content
from perfkit.serving.server.connection import Request
from perfkit.serving.server.job import to_json
from perfkit.serving.server.replies import JSON

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

MAX_INPUTS = 1024  # of one request
_SHAPE = '{"input": …} or {"inputs": […]}'
_TYPES = (JSON,)


class PlainCall:
    """A request document that was understood."""

    __slots__ = ("_id", "_is_list", "_service", "payloads")
    content_type = JSON
    headers = b""
    encode = staticmethod(to_json)

    def __init__(self, service: Service, request: Request) -> None:
        document = read_document(request)
        self._service = service
        self.payloads = read_inputs(document, service.settings.queue.depth)
        self._id = read_id(document["id"]) if "id" in document else b""
        self._is_list = "inputs" in document

    def write(self, outputs: Sequence[bytes]) -> bytes:
        """One `output` or the list of `outputs`, as it was asked, under the request's id or a new one."""
        request_id = self._id or b'"%d"' % next(self._service.answer_ids)
        if self._is_list:
            return b'{"id":%b,"outputs":[%b]}' % (request_id, b",".join(outputs))
        return b'{"id":%b,"output":%b}' % (request_id, outputs[0])


def read_document(request: Request) -> dict[str, Any]:
    """The request's JSON object; raises MalformedRequest with 415 or 400."""
    check_content(request, _TYPES)
    try:
        document = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise MalformedRequest(400, "bad_json", f"the body is not JSON: {error}; send {_SHAPE}") from None
    if not isinstance(document, dict):
        raise MalformedRequest(400, "bad_shape", f"the body is a JSON {_kind(document)}; send {_SHAPE}")
    return document


def read_inputs(document: dict[str, Any], depth: int | None) -> list[Any]:
    """The inputs of a request document; raises MalformedRequest, also for more than could ever wait at once."""
    has_one, has_many = "input" in document, "inputs" in document
    if has_one == has_many:
        came = "both input and inputs" if has_one else f"neither input nor inputs (keys: {sorted(document)[:5]})"
        raise MalformedRequest(400, "bad_shape", f"the body has {came}; send {_SHAPE}")
    if has_one:
        return [document["input"]]
    inputs, most = document["inputs"], min(depth or MAX_INPUTS, MAX_INPUTS)
    if not isinstance(inputs, list) or not 1 <= len(inputs) <= most:
        raise MalformedRequest(400, "bad_shape", f"inputs must be a list of 1 to {most} entries")
    return inputs


def read_id(given: Any) -> bytes:
    """The JSON of the id that a request gives, empty for null; raises MalformedRequest."""
    if given is None:
        return b""
    if type(given) not in (str, int, float) or (type(given) is str and len(given) > MAX_ID_CHARACTERS):
        allowed = f"a text of at most {MAX_ID_CHARACTERS} characters, or a number"
        raise MalformedRequest(400, "bad_id", f"id must be {allowed}")
    return orjson.dumps(given)


def _kind(value: Any) -> str:
    kinds = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
    return kinds[type(value)]
