"""How is an answer written in tensors, each one as JSON or as bytes behind the JSON?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from perfkit.serving.server.oip.metadata import VERSION
from perfkit.serving.server.oip.tensors import as_array, to_binary, to_json
from perfkit.serving.server.replies import JSON
from perfkit.serving.server.signature import Signature, TensorSpec

OCTETS = b"application/octet-stream"


class Asked(NamedTuple):
    """An output that the client wants, and in which form."""

    spec: TensorSpec
    is_binary: bool


class V2Call:
    """A request in tensors that was understood."""

    __slots__ = ("_asked", "_head", "_signature", "content_type", "headers", "payloads")

    def __init__(self, model: str, request_id: str | None, signature: Signature, asked: Sequence[Asked]) -> None:
        self.payloads: list[Any] = []
        self.content_type = JSON
        self.headers = b""
        head = {"model_name": model, "model_version": VERSION}
        self._head = orjson.dumps(head if request_id is None else head | {"id": request_id})[:-1]
        self._signature = signature
        self._asked = asked

    def encode(self, answer: Any) -> list[bytes]:
        """The asked outputs of one input, each in its form; raises what the model's signature raises."""
        tensors = self._signature.to_tensors(answer)
        encoded = []
        for spec, is_binary in self._asked:
            array = as_array(spec.name, tensors[spec.name], spec.datatype, spec.shape)
            encoded.append(to_binary(array, spec.datatype) if is_binary else to_json(array, spec.datatype))
        return encoded

    def write(self, outputs: Sequence[list[bytes]]) -> bytes:
        """All inputs' outputs, one tensor for each asked output."""
        described: list[bytes] = []
        blobs: list[bytes] = []
        for index, (spec, is_binary) in enumerate(self._asked):
            parts = [output[index] for output in outputs]
            facts: dict[str, Any] = {
                "name": spec.name,
                "datatype": spec.datatype,
                "shape": [len(outputs), *spec.shape],
            }
            if is_binary:
                blobs.append(b"".join(parts))
                described.append(orjson.dumps(facts | {"parameters": {"binary_data_size": len(blobs[-1])}}))
            else:
                described.append(b'%b,"data":[%b]}' % (orjson.dumps(facts)[:-1], b",".join(parts)))
        header = b'%b,"outputs":[%b]}' % (self._head, b",".join(described))
        if not blobs:
            return header
        self.content_type = OCTETS
        self.headers = b"inference-header-content-length: %d\r\n" % len(header)
        return b"".join((header, *blobs))
