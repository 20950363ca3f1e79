"""Which tensors has a model that says nothing of tensors? Any payload and any answer, as JSON documents."""

from __future__ import annotations

from typing import Any

import orjson

from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.signature import Row, Signature, TensorSpec


def _from_json(row: Row) -> Any:
    try:
        return orjson.loads(row["input"][0])
    except orjson.JSONDecodeError as error:
        raise InputRefused(f"the element is not JSON: {error}; this model takes a JSON document in each") from None


def _as_json(answer: Any) -> dict[str, Any]:
    return {"output": [orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)]}


JSON_SIGNATURE = Signature(
    inputs=(TensorSpec(name="input", datatype="BYTES", shape=(1,)),),
    outputs=(TensorSpec(name="output", datatype="BYTES", shape=(1,)),),
    to_payload=_from_json,
    to_tensors=_as_json,
)
"""Any payload and any answer, as JSON documents."""


def signature_of(model: Any) -> Signature:
    """What the model says of its tensors, else the JSON documents."""
    found = getattr(model, "signature", None)
    return found if isinstance(found, Signature) else JSON_SIGNATURE
