"""Does the OpenAPI document describe every path of the service port, and nothing else, and do real answers keep it?"""

from __future__ import annotations

import json

import jsonschema
import pytest
import schemathesis
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from perfkit.measuring.service import launch
from perfkit.serving.server.openapi import document
from perfkit.serving.server.routes import service_routes
from sample_models.noop import Noop

DOCUMENT = document("noop", Noop.signature)
MODEL = "/v2/models/noop"
GOOD = {"inputs": [{"name": "numbers", "datatype": "FP32", "shape": [1, 64], "data": [0.5] * 64}]}


@pytest.fixture(scope="module")
def noop():
    """A server of the no-op model; shared by the tests of this module."""
    with launch(model="noop", ledger={"capacity": 4096}) as service:
        yield service


def test_each_route_is_described_and_each_described_path_is_a_route():
    routes = {
        (path.decode(), method.decode().lower()) for path, methods in service_routes(None).items() for method in methods
    }
    described = {
        (path, method) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
    }
    assert described == routes


@pytest.mark.slow
def test_the_document_is_openapi():
    schemathesis.openapi.from_dict(DOCUMENT).validate()


def test_its_schemas_are_schemas_and_each_operation_has_its_own_name():
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = [
        operation["operationId"]
        for item in DOCUMENT["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(set(names)) == len(names)


def test_every_schema_is_used():
    text = json.dumps(DOCUMENT)
    unused = [name for name in DOCUMENT["components"]["schemas"] if f'schemas/{name}"' not in text]
    assert unused == []


class Checker:
    """Holds an answer against the document that the server itself gave."""

    def __init__(self, described):
        self._described = described
        resource = Resource(contents=described, specification=DRAFT202012)
        self._registry = Registry().with_resource("urn:api", resource)

    def errors(self, path, method, answer):
        """What the document does not allow of the answer."""
        responses = self._described["paths"][path][method]["responses"]
        described = responses[str(answer.status)]
        kind = answer.headers["content-type"]
        assert kind in described["content"], f"{answer.status} of {path} came as {kind}"
        for name, header in described.get("headers", {}).items():
            assert name.lower() in answer.headers or not header.get("required"), name
        if kind != "application/json":
            return []
        place = ["paths", path, method, "responses", str(answer.status), "content", kind, "schema"]
        pointer = "/".join(step.replace("~", "~0").replace("/", "~1") for step in place)
        validator = jsonschema.Draft202012Validator({"$ref": f"urn:api#/{pointer}"}, registry=self._registry)
        return [error.message for error in validator.iter_errors(answer.json)]


@pytest.fixture
def ask(noop, dial):
    """Sends a request by method, real path, body and headers; gives the answer."""
    wire = dial(noop)

    def send(method, path, body=b"", *headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method.upper()} {path} HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {len(body)}"]
        wire.send("\r\n".join([*lines, "", ""]).encode() + body)
        return wire.answer()

    return send


@pytest.fixture
def checker(ask):
    """By the document as the server gives it."""
    return Checker(ask("get", "/openapi.json").json)


def filled(path):
    return path.replace("{name}", "noop").replace("{version}", "1")


BODIES = {"/predict": {"input": 1}} | dict.fromkeys(
    ("/v2/models/{name}/infer", "/v2/models/{name}/versions/{version}/infer"), GOOD
)


@pytest.mark.parametrize(
    ("path", "method"),
    [(path, method) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"],
)
def test_a_good_answer_of_every_path_keeps_to_its_schema(ask, checker, path, method):
    ask("post", MODEL + "/infer", GOOD)  # so that the statistics have something to say
    answer = ask(method, filled(path), BODIES.get(path, b""))
    assert (answer.status, checker.errors(path, method, answer)) == (200, [])


REFUSALS = [
    ("post", "/predict", b"{", (), 400),
    ("post", "/predict", {"inputs": []}, (), 400),
    ("post", "/predict", {"input": 1}, ("Content-Type: text/plain",), 415),
    ("post", "/predict", {"input": 1}, ("Perfkit-Deadline: soon",), 400),
    ("post", "/predict", {"input": 1}, ("Perfkit-Deadline: 0",), 504),
    ("get", "/stats", b"", ("Origin: http://evil.example",), 403),
    ("get", "/stats", b"", ("X: " + "y" * 70000,), 431),
    ("get", "/v2/models/{name}", b"", ("Origin: http://evil.example",), 403),
    ("post", "/v2/models/{name}/infer", b"{", (), 400),
    ("post", "/v2/models/{name}/infer", GOOD | {"id": 1}, (), 400),
    ("post", "/v2/models/{name}/infer", GOOD, ("Content-Encoding: gzip",), 415),
    ("post", "/v2/models/{name}/infer", GOOD, ("Perfkit-Deadline: 0",), 504),
    ("post", "/v2/models/{name}/infer", b"x" * (9 << 20), (), 413),
    ("post", "/v2/repository/index", b"{", (), 400),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "status"), REFUSALS)
def test_a_refusal_keeps_to_its_schema_too(ask, checker, method, path, body, headers, status):
    answer = ask(method, filled(path), body, *headers)
    assert (answer.status, checker.errors(path, method, answer)) == (status, [])


@pytest.mark.parametrize("end", ["", "/ready", "/config", "/stats"])
def test_an_unknown_model_is_refused_as_described(ask, checker, end):
    answer = ask("get", f"/v2/models/other{end}")
    assert (answer.status, checker.errors("/v2/models/{name}" + end, "get", answer)) == (404, [])


def test_tensors_as_bytes_come_as_described(ask, checker):
    answer = ask("post", MODEL + "/infer", GOOD | {"parameters": {"binary_data_output": True}})
    assert (answer.status, checker.errors("/v2/models/{name}/infer", "post", answer)) == (200, [])


def test_the_check_itself_finds_a_wrong_answer(ask, checker):
    answer = ask("get", "/health/live")
    assert checker.errors("/health/live", "get", answer._replace(body=b'{"live": false}')) == ["True was expected"]
    assert checker.errors("/health/ready", "get", answer) == ["'ready' is a required property"]
    with pytest.raises(KeyError):
        checker.errors("/health/live", "get", answer._replace(status=418))
