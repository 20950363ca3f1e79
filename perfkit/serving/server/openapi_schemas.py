"""Which JSON documents does the service port take and give? Schemas for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from perfkit.records import EndState
from perfkit.serving.server.oip.metadata import EXTENSIONS, VERSION
from perfkit.serving.server.signature import ANY, DATATYPES, Signature, TensorSpec

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SECONDS: Schema = {"type": "number", "minimum": 0}
_ANYTHING: Schema = {}
_NOTHING: Schema = {"not": {}}
_LONGEST_ID = 256


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with these members; more may come, as clients must expect of a later version."""
    return {"type": "object", "required": [*required], "properties": required | (optional or {})}


def _list(of: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": of, **limits}


def _one(value: Any) -> Schema:
    return {"const": value}


def ref(name: str) -> Schema:
    """A reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


_NAME_OF_TENSOR: Schema = {"name": _TEXT, "datatype": {"enum": [*DATATYPES]}}
_PARAMETERS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean"]},
}
_DURATION = ref("V2Duration")
_BATCH_PARTS = ("compute_input", "compute_infer", "compute_output")
_REQUEST_PARTS = ("success", "fail", "queue", *_BATCH_PARTS, "cache_hit", "cache_miss")
_COUNTERS = ("accepted", *(state.label for state in EndState if state is not EndState.OPEN))


def _plain() -> dict[str, Schema]:
    one = _object({"input": {"description": "whatever the model takes"}}, {"id": _plain_id(), "inputs": _NOTHING})
    many = _object({"inputs": _list(_ANYTHING, minItems=1, maxItems=1024)}, {"id": _plain_id(), "input": _NOTHING})
    return {
        "Error": _object({"error": _object({"code": _TEXT, "message": _TEXT})}),
        "PredictRequest": {"oneOf": [one, many]},
        "PredictAnswer": {
            "oneOf": [
                _object({"id": {"type": ["string", "number"]}, "output": _ANYTHING}),
                _object({"id": {"type": ["string", "number"]}, "outputs": _list(_ANYTHING, minItems=1)}),
            ]
        },
        "Live": _object({"live": _one(True)}),
        "Ready": _object({"ready": _one(True)}),
        "Stats": _stats(),
        "OpenApi": _object({"openapi": _TEXT, "info": _object({"title": _TEXT, "version": _TEXT}), "paths": {}}),
    }


def _plain_id() -> Schema:
    limited: Schema = {"type": "string", "maxLength": _LONGEST_ID}
    return {"anyOf": [limited, {"type": ["number", "null"]}], "description": "comes back with the answer"}


def _stats() -> Schema:
    return _object(
        {
            "schema": _one(1),
            "simulated": _FLAG,
            "model": _TEXT,
            "payloads": {"type": ["string", "null"]},
            "device": _object({"name": _TEXT, "effective_threads": _list(_COUNT), "figures": {"type": "object"}}),
            "execution": _object(
                {
                    "level": _TEXT,
                    "dtype": _TEXT,
                    "difference": {"type": ["object", "null"]},
                    "graphs_ready": {"type": ["integer", "null"]},
                    "graphs": {"type": ["integer", "null"]},
                }
            ),
            "is_ready": _FLAG,
            "uptime_s": _SECONDS,
            "cpu_s": _SECONDS,
            "gauge": _object({"time_ns": _COUNT, "in_flight": _COUNT, "area_ns": _COUNT}),
            "queued": _COUNT,
            "admitted": _COUNT,
            "counters": _object(dict.fromkeys(_COUNTERS, _COUNT)),
            "http_errors": _COUNT,
            "ledger": _object({"requests": _COUNT, "batches": _COUNT, "is_stamped": _FLAG, "capacity": _COUNT}),
            "threads": {"type": "object", "additionalProperties": _TEXT},
        }
    )


def _v2() -> dict[str, Schema]:
    described = _object({**_NAME_OF_TENSOR, "shape": _list({"type": "integer", "minimum": -1})})
    config = _object({"name": _TEXT, "data_type": _TEXT, "dims": _list({"type": "integer", "minimum": -1})})
    return {
        "V2Error": _object({"error": _TEXT}),
        "V2Server": _object({"name": _one("perfkit"), "version": _TEXT, "extensions": _list({"enum": [*EXTENSIONS]})}),
        "V2Model": _object(
            {
                "name": _TEXT,
                "versions": _list(_one(VERSION)),
                "platform": _one("perfkit"),
                "inputs": _list(described, minItems=1),
                "outputs": _list(described, minItems=1),
            }
        ),
        "V2ModelReady": _object({"name": _TEXT, "ready": _one(True)}),
        "V2Config": _object(
            {
                "name": _TEXT,
                "max_batch_size": {"type": "integer", "minimum": 1},
                "input": _list(config, minItems=1),
                "output": _list(config, minItems=1),
                "instance_group": _list(_object({"name": _TEXT, "kind": _TEXT, "count": _COUNT})),
            },
            {
                "dynamic_batching": _object(
                    {"preferred_batch_size": _list(_COUNT), "max_queue_delay_microseconds": _COUNT}
                )
            },
        ),
        "V2Index": _list(
            _object({"name": _TEXT, "version": _TEXT, "state": {"enum": ["READY", "UNAVAILABLE"]}, "reason": _TEXT})
        ),
        "V2IndexRequest": _object({}, {"ready": _FLAG}),
        **_v2_statistics(),
    }


def _v2_infer(signature: Signature) -> dict[str, Schema]:
    outputs = _list({"oneOf": [_tensor(spec, _object({"binary_data_size": _COUNT})) for spec in signature.outputs]})
    asked = _object({"name": {"enum": [spec.name for spec in signature.outputs]}}, {"parameters": _PARAMETERS})
    count = len(signature.inputs)
    inputs = {"oneOf": [_tensor(spec, _PARAMETERS) for spec in signature.inputs]}
    return {
        "V2InferRequest": _object(
            {"inputs": _list(inputs, minItems=count, maxItems=count)},
            {
                "id": {"type": "string", "maxLength": _LONGEST_ID},
                "parameters": _PARAMETERS,
                "outputs": _list(asked),
            },
        ),
        "V2InferAnswer": _object(
            {"model_name": _TEXT, "model_version": _one(VERSION), "outputs": outputs}, {"id": _TEXT}
        ),
    }


def _tensor(spec: TensorSpec, parameters: Schema) -> Schema:
    """What JSON says of one tensor. That the data has as many elements as the shape is beyond a schema."""
    sizes: list[Schema] = [{"type": "integer", "minimum": 1} if size == ANY else _one(size) for size in spec.wire_shape]
    shape = {"type": "array", "prefixItems": sizes, "minItems": len(sizes), "maxItems": len(sizes)}
    data: Schema = {"type": "array", "description": "the elements, flat or nested as the shape says"}
    return _object(
        {"name": _one(spec.name), "datatype": _one(spec.datatype), "shape": shape},
        {"data": data, "parameters": parameters},
    )


def _v2_statistics() -> dict[str, Schema]:
    return {
        "V2Duration": _object({"count": _COUNT, "ns": _COUNT}),
        "V2Statistics": _object({"model_stats": _list(_v2_model_statistics(), minItems=1, maxItems=1)}),
    }


def _v2_model_statistics() -> Schema:
    return _object(
        {
            "name": _TEXT,
            "version": _one(VERSION),
            "last_inference": _COUNT,
            "inference_count": _COUNT,
            "execution_count": _COUNT,
            "inference_stats": _object(dict.fromkeys(_REQUEST_PARTS, _DURATION)),
            "batch_stats": _list(_object({"batch_size": _COUNT, **dict.fromkeys(_BATCH_PARTS, _DURATION)})),
        }
    )


def schemas(signature: Signature) -> dict[str, Schema]:
    """All of them, for a model of these tensors."""
    return {**_plain(), **_v2(), **_v2_infer(signature)}
