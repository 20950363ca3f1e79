"""Which paths does the service port have, what do they take, and what may they answer? An OpenAPI 3.1 document.

It describes the running server: the one model that it has is the only name in the paths below /v2.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from perfkit.serving.server import metrics
from perfkit.serving.server.oip.metadata import VERSION
from perfkit.serving.server.openapi_schemas import Schema, ref, schemas
from perfkit.serving.server.signature import Signature

JSON = "application/json"
OCTETS = "application/octet-stream"
_WHOLE_SECONDS: Schema = {"type": "integer", "minimum": 1}
_REASONS = {
    "400": "the request cannot be read; the answer says what came and what is taken",
    "401": "the token is missing or wrong",
    "403": "without a token only requests to and from this machine's own names are served",
    "404": "no such path, model or version",
    "408": "the request did not arrive whole within the setting http.request_timeout_s",
    "413": "the body is larger than the setting http.max_body_bytes",
    "415": "content-type or content-encoding is not served",
    "422": "the model refuses the input",
    "429": "requests come faster than the agreed rate",
    "431": "the headers are too large",
    "500": "the service or the model failed on this request",
    "503": "not now: the queue is full, a limit is reached, or the service starts or ends",
    "504": "the deadline passed before the model saw the request",
}
_ALWAYS = ("400", "401", "403", "408", "413", "431")  # what any request may be told before its path is looked at
_PREDICTION = ("415", "422", "429", "500", "503", "504")
_COMES_BACK = ("429", "503", "504")
_PREDICTION_HEADERS: list[Schema] = [
    {
        "name": "Perfkit-Timing",
        "in": "header",
        "description": "1: the answer carries the stages' durations in Server-Timing; anything else: it does not",
        "schema": {"type": "string"},
    },
    {
        "name": "Perfkit-Deadline",
        "in": "header",
        "description": "seconds that remain until the answer is worth nothing",
        "schema": {"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,9})?$"},
    },
    {
        "name": "Perfkit-Batch",
        "in": "header",
        "description": "off: a batch of its own",
        "schema": {"enum": ["on", "off"]},
    },
    {
        "name": "Perfkit-Lane",
        "in": "header",
        "description": "one of the lanes in the settings; without lanes it means nothing",
        "schema": {"type": "string"},
    },
    {
        "name": "Perfkit-Id",
        "in": "header",
        "description": "a number under which the ledger keeps the request; anything else counts as none",
        "schema": {"type": "string"},
    },
]


def document(model: str, signature: Signature) -> dict[str, Any]:
    """The document of a server of this model, which takes and gives these tensors."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "perfkit reference server",
            "version": version("perfkit"),
            "description": "Predictions in plain JSON and by the Open Inference Protocol (KServe v2).",
        },
        "paths": {**_plain_paths(), **_v2_paths(model)},
        "components": {
            "schemas": schemas(signature),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _plain_paths() -> dict[str, Any]:
    text = metrics.CONTENT_TYPE.decode()
    return {
        "/predict": {
            "post": _Operation("Predict", "PredictAnswer", "One prediction for each input.")
            .takes({JSON: ref("PredictRequest")})
            .predicts()
            .build()
        },
        "/health/live": {"get": _Operation("Live", "Live", "The process answers.").build()},
        "/health/ready": {"get": _Operation("Ready", "Ready", "Requests are taken.").may_answer("503").build()},
        "/stats": {"get": _Operation("Stats", "Stats", "Counters, gauges and identity at this instant.").build()},
        "/metrics": {"get": _Operation("Metrics", {text: {"type": "string"}}, "The same for Prometheus.").build()},
        "/openapi.json": {"get": _Operation("OpenApi", "OpenApi", "This document.").build()},
    }


def _v2_paths(model: str) -> dict[str, Any]:
    name: Schema = _in_path("name", model)
    paths: dict[str, Any] = {
        "/v2": {"get": _V2("Server", "V2Server", "What is served, with which extensions.").build()},
        "/v2/health/live": {"get": _V2("Live", "Live", "The process answers.").build()},
        "/v2/health/ready": {"get": _V2("Ready", "Ready", "Requests are taken.").may_answer("503").build()},
        "/v2/models/stats": {"get": _V2("AllStatistics", "V2Statistics", "Figures of all models.").build()},
        "/v2/repository/index": {
            "post": _V2("Index", "V2Index", "The models that there are.")
            .takes({JSON: ref("V2IndexRequest")}, is_required=False)
            .may_answer("415")
            .build()
        },
    }
    for base, parameters, suffix in (
        ("/v2/models/{name}", [name], ""),
        ("/v2/models/{name}/versions/{version}", [name, _in_path("version", VERSION)], "OfVersion"),
    ):
        paths |= {f"{base}{end}": {"parameters": parameters, **item} for end, item in _of_model(suffix).items()}
    return paths


def _of_model(suffix: str) -> dict[str, Any]:
    infer = _V2(f"Infer{suffix}", {JSON: ref("V2InferAnswer"), OCTETS: _bytes()}, "Inference on tensors.")
    return {
        "": {"get": _V2(f"Model{suffix}", "V2Model", "The model's tensors.").may_answer("404").build()},
        "/ready": {
            "get": _V2(f"ModelReady{suffix}", "V2ModelReady", "Requests are taken.").may_answer("404", "503").build()
        },
        "/config": {"get": _V2(f"Config{suffix}", "V2Config", "The configuration.").may_answer("404").build()},
        "/stats": {"get": _V2(f"Statistics{suffix}", "V2Statistics", "Its figures.").may_answer("404").build()},
        "/infer": {
            "post": infer.takes({JSON: ref("V2InferRequest"), OCTETS: _bytes()}).may_answer("404").predicts().build()
        },
    }


def _bytes() -> Schema:
    return {
        "type": "string",
        "format": "binary",
        "description": "JSON, as long as the header Inference-Header-Content-Length says, and the tensors' bytes",
    }


def _in_path(name: str, only: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"enum": [only]}}


class _Operation:
    """One method of one path, built up."""

    error = "Error"
    prefix = ""

    def __init__(self, name: str, good: str | dict[str, Schema], summary: str) -> None:
        content = {JSON: ref(good)} if isinstance(good, str) else good
        self._good: dict[str, Any] = {
            "description": "done",
            "content": {kind: {"schema": schema} for kind, schema in content.items()},
        }
        self._statuses = set(_ALWAYS)
        self._facts: dict[str, Any] = {"operationId": f"{self.prefix}{name}", "summary": summary}

    def takes(self, content: dict[str, Schema], *, is_required: bool = True) -> _Operation:
        """It has a body."""
        body = {kind: {"schema": schema} for kind, schema in content.items()}
        self._facts["requestBody"] = {"required": is_required, "content": body}
        return self

    def may_answer(self, *statuses: str) -> _Operation:
        """It may be refused in these ways too."""
        self._statuses |= {*statuses}
        return self

    def predicts(self) -> _Operation:
        """It takes the way of a prediction, with its refusals and headers."""
        self._good["headers"] = {"Server-Timing": {"schema": {"type": "string"}}}
        self._facts["parameters"] = _PREDICTION_HEADERS
        return self.may_answer(*_PREDICTION)

    def build(self) -> dict[str, Any]:
        """The operation object."""
        refusals = {status: self._refusal(status) for status in sorted(self._statuses)}
        return {**self._facts, "responses": {"200": self._good, **refusals}}

    def _refusal(self, status: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "description": _REASONS[status],
            "content": {JSON: {"schema": ref(self.error)}},
        }
        if status in _COMES_BACK:
            found["headers"] = {"Retry-After": {"required": True, "schema": _WHOLE_SECONDS}}
        return found


class _V2(_Operation):
    """The same in the words of the Open Inference Protocol."""

    error = "V2Error"
    prefix = "v2"
