"""What does a client of the Open Inference Protocol see on the wire? Raw bytes, so that no client's library helps."""

from __future__ import annotations

import json
import socket
import struct

import pytest

from perfkit import fields
from perfkit.measuring.service import launch
from perfkit.serving.server.cold import ColdFront
from perfkit.settings.surroundings import HttpSettings

PATH = "/v2/models/lab_models:Pair"


@pytest.fixture(scope="module")
def pair_server(models_on_path):
    """A server whose model adds and names, in two tensors each way; shared by the tests of this module."""
    with launch(model="lab_models:Pair", ledger={"capacity": 4096}) as service:
        yield service


@pytest.fixture
def wire(pair_server, dial):
    return dial(pair_server)


def numbers(*rows, **change):
    return {
        "name": "numbers",
        "datatype": "INT32",
        "shape": [len(rows), 2],
        "data": [number for row in rows for number in row],
    } | change


def names(*texts, **change):
    return {"name": "name", "datatype": "BYTES", "shape": [len(texts), 1], "data": [*texts]} | change


def infer(wire, document, *headers, tail=b"", path=PATH + "/infer"):
    head = document if isinstance(document, bytes) else json.dumps(document).encode()
    length = [f"Inference-Header-Content-Length: {len(head)}"] if tail else []
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *length, *headers, f"Content-Length: {len(head + tail)}"]
    wire.send("\r\n".join([*lines, "", ""]).encode() + head + tail)
    return wire.answer()


def test_tensors_in_json_are_answered_in_json(wire):
    answer = infer(wire, {"id": "mine", "inputs": [numbers([1, 2], [3, 4]), names("a", "ü")]})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {
        "model_name": "lab_models:Pair",
        "model_version": "1",
        "id": "mine",
        "outputs": [
            {"name": "sum", "datatype": "INT64", "shape": [2, 1], "data": [3, 7]},
            {"name": "label", "datatype": "BYTES", "shape": [2, 1], "data": ["a!", "ü!"]},
        ],
    }


def test_tensors_in_bytes_are_answered_in_bytes_when_asked(wire):
    raw = struct.pack("<4i", 1, 2, 3, 4) + struct.pack("<I1sI2s", 1, b"a", 2, "ü".encode())
    document = {
        "inputs": [
            numbers([1, 2], [3, 4], parameters={"binary_data_size": 16}),
            names("a", "ü", parameters={"binary_data_size": 11}),
        ],
        "parameters": {"binary_data_output": True},
    }
    for tensor in document["inputs"]:
        del tensor["data"]
    answer = infer(wire, document, tail=raw)
    length = int(answer.headers["inference-header-content-length"])
    head, tail = json.loads(answer.body[:length]), answer.body[length:]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert head == {
        "model_name": "lab_models:Pair",
        "model_version": "1",
        "outputs": [
            {"name": "sum", "datatype": "INT64", "shape": [2, 1], "parameters": {"binary_data_size": 16}},
            {"name": "label", "datatype": "BYTES", "shape": [2, 1], "parameters": {"binary_data_size": 13}},
        ],
    }
    assert tail == struct.pack("<2q", 3, 7) + struct.pack("<I2sI3s", 2, b"a!", 3, "ü!".encode())


def test_each_output_may_have_its_own_form_and_only_the_asked_ones_come(wire):
    inputs = [numbers([1, 2]), names("a")]
    one = infer(wire, {"inputs": inputs, "outputs": [{"name": "label"}]}).json
    assert one["outputs"] == [{"name": "label", "datatype": "BYTES", "shape": [1, 1], "data": ["a!"]}]
    mixed = {"inputs": inputs, "outputs": [{"name": "sum", "parameters": {"binary_data": True}}, {"name": "label"}]}
    answer = infer(wire, mixed)
    length = int(answer.headers["inference-header-content-length"])
    assert [set(output) for output in json.loads(answer.body[:length])["outputs"]] == [
        {"name", "datatype", "shape", "parameters"},
        {"name", "datatype", "shape", "data"},
    ]
    assert answer.body[length:] == struct.pack("<q", 3)


def test_both_protocols_share_path_ledger_and_counters(wire, pair_server):
    before = pair_server.stats()
    inputs = [numbers([1, 2], [3, 4]), names("a", "b")]
    told = infer(wire, {"inputs": inputs}, "Perfkit-Timing: 1", "Perfkit-Id: 77").headers["server-timing"]
    assert told.startswith("parse;dur=")
    wire.post({"input": [[1, 2], "a"]})
    assert wire.answer().json["output"] == {"sum": 3, "label": "a!"}
    after = pair_server.stats()
    assert after["counters"]["ok"] - before["counters"]["ok"] == 3
    assert after["ledger"]["requests"] - before["ledger"]["requests"] == 3
    assert infer(wire, {"inputs": [numbers([-1, 0]), names("a")]}).status == 422
    assert pair_server.stats()["counters"]["refused"] - before["counters"]["refused"] == 1


def test_metadata_configuration_readiness_and_index(wire):
    def get(path, method="GET"):
        wire.get(path, method=method)
        answer = wire.answer()
        return answer.status, answer.json

    tensors = {
        "inputs": [
            {"name": "numbers", "datatype": "INT32", "shape": [-1, 2]},
            {"name": "name", "datatype": "BYTES", "shape": [-1, 1]},
        ],
        "outputs": [
            {"name": "sum", "datatype": "INT64", "shape": [-1, 1]},
            {"name": "label", "datatype": "BYTES", "shape": [-1, 1]},
        ],
    }
    described = {"name": "lab_models:Pair", "versions": ["1"], "platform": "perfkit", **tensors}
    assert get(PATH) == get(PATH + "/versions/1") == get(PATH.replace(":", "%3A")) == (200, described)
    assert get("/v2/health/live") == (200, {"live": True})
    assert get("/v2/health/ready") == (200, {"ready": True})
    assert get(PATH + "/ready") == (200, {"name": "lab_models:Pair", "ready": True})
    index = [{"name": "lab_models:Pair", "version": "1", "state": "READY", "reason": ""}]
    assert get("/v2/repository/index", "POST") == (200, index)
    status, server = get("/v2")
    assert (status, server["name"], server["extensions"]) == (
        200,
        "perfkit",
        ["binary_tensor_data", "model_configuration", "statistics"],
    )
    status, config = get(PATH + "/config")
    assert (status, config["max_batch_size"], "dynamic_batching" in config) == (200, 256, False)
    assert config["input"][1] == {"name": "name", "data_type": "TYPE_STRING", "dims": [1]}


def test_the_configuration_follows_the_settings(wire, pair_server):
    pair_server.configure({"batch.max_size": 8, "batch.max_delay_s": 0.005, "queue.depth": 10})
    wire.get(PATH + "/config")
    config = wire.answer().json
    assert config["dynamic_batching"] == {"preferred_batch_size": [8], "max_queue_delay_microseconds": 5000}
    assert config["max_batch_size"] == 10
    eleven = [numbers(*[[1, 1]] * 11), names(*"abcdefghijk")]
    answer = infer(wire, {"inputs": eleven})
    assert (answer.status, answer.json["error"].endswith("with at most 10 in front")) == (400, True)
    pair_server.configure({"batch.max_size": 1, "batch.max_delay_s": 0.0, "queue.depth": 256})


def refused(wire, document, **how):
    answer = infer(wire, document, **how)
    assert set(answer.json) == {"error"}
    return answer.status, answer.json["error"]


ALLOWED = "the model takes [-1, 2] (-1 = any size from 1), with at most 256 in front"
SHAPE = '{"inputs": [{"name", "shape", "datatype", "data"}]}'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [1, 3]}, f"has the shape [1, 3]; {ALLOWED}"),
        ({"shape": [0, 2]}, f"has the shape [0, 2]; {ALLOWED}"),
        ({"shape": [-1, 2]}, f"has the shape [-1, 2]; {ALLOWED}"),
        ({"shape": [-1, -2]}, f"has the shape [-1, -2]; {ALLOWED}"),
        ({"shape": [2**62, 2]}, f"has the shape [{2**62}, 2]; {ALLOWED}"),
        ({"shape": [257, 2]}, f"has the shape [257, 2]; {ALLOWED}"),
        ({"shape": [2]}, f"has the shape [2]; {ALLOWED}"),
        ({"shape": [1, 1, 2]}, f"has the shape [1, 1, 2]; {ALLOWED}"),
        ({"shape": [1.0, 2]}, f"has no list of whole numbers as its shape; {ALLOWED}"),
        ({"shape": [True, 2]}, f"has no list of whole numbers as its shape; {ALLOWED}"),
        ({"shape": "12"}, f"has no list of whole numbers as its shape; {ALLOWED}"),
        ({"shape": None}, f"has no list of whole numbers as its shape; {ALLOWED}"),
        ({"datatype": "INT64"}, "has the datatype 'INT64'; the model takes INT32"),
        (
            {"datatype": "float32"},
            "has the datatype 'float32', which is none of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, "
            "INT64, FP16, BF16, FP32, FP64, BYTES; the model takes INT32",
        ),
        ({"data": [1]}, "has 1 elements in data; its shape [1, 2] takes 2"),
        (
            {"data": [1, 2**31]},
            "holds a number that INT32 cannot; each must lie from -2147483648 to 2147483647",
        ),
        (
            {"parameters": {"binary_data_size": 8}},
            "needs either data or the parameter binary_data_size, and not both",
        ),
    ],
)
def test_a_tensor_that_is_not_what_it_declares_is_refused(wire, change, message):
    assert refused(wire, {"inputs": [numbers([1, 2]) | change, names("a")]}) == (400, f"tensor 'numbers' {message}")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", f"the body is empty; send {SHAPE}"),
        (b"[]", f"the body is JSON, but no object; send {SHAPE}"),
        ({}, f"inputs must be a list of objects; send {SHAPE}"),
        ({"inputs": {}}, f"inputs must be a list of objects; send {SHAPE}"),
        ({"inputs": [1]}, f"inputs must be a list of objects; send {SHAPE}"),
        ({"inputs": []}, "the input 'name' is missing; the model takes numbers, name"),
        ({"inputs": [numbers([1, 2])]}, "the input 'name' is missing; the model takes numbers, name"),
        ({"inputs": [names("a"), {"name": "x"}]}, "unknown input 'x'; the model has numbers, name"),
        ({"inputs": [names("a"), {"name": []}]}, "unknown input []; the model has numbers, name"),
        ({"inputs": [names("a"), names("a")]}, "the input 'name' comes twice; send each once"),
        (
            {"inputs": [numbers([1, 2]), names("a", "b")]},
            "the inputs disagree in their first dimension: {'numbers': 1, 'name': 2}",
        ),
        ({"inputs": [], "id": 7}, "id must be a string of at most 256 characters"),
        ({"inputs": [], "id": "x" * 257}, "id must be a string of at most 256 characters"),
        ({"parameters": []}, "the parameters of the request must be an object of strings, numbers and booleans"),
        ({"parameters": {"a": []}}, "the parameters of the request must be an object of strings, numbers and booleans"),
        (
            {"parameters": {"timeout": 1000}},
            "the parameter timeout of the request is not served here; use the header Perfkit-Deadline",
        ),
        ({"parameters": {"binary_data_output": 1}}, "the parameter binary_data_output must be true or false"),
        ({"outputs": "sum"}, f"outputs must be a list of objects; send {SHAPE}"),
        ({"outputs": [{"name": "x"}]}, "unknown output 'x'; the model has sum, label"),
        ({"outputs": [{"name": "sum"}, {"name": "sum"}]}, "the output 'sum' comes twice; send each once"),
        (
            {"outputs": [{"name": "sum", "parameters": {"classification": 3}}]},
            "the parameter classification of output 'sum' is not served here; take the whole output",
        ),
        (
            {"inputs": [names("a"), numbers([1, 2], parameters={"shared_memory_region": "r"})]},
            "the parameter shared_memory_region of input 'numbers' is not served here; send data",
        ),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_and_the_connection_goes_on(wire, document, message):
    assert refused(wire, document) == (400, message)
    assert infer(wire, {"inputs": [numbers([1, 2]), names("a")]}).status == 200


def without_data(tensor):
    return {name: value for name, value in tensor.items() if name != "data"}


@pytest.mark.parametrize(
    ("sizes", "tail", "message"),
    [
        ((8, 5), b"12345678\1\0\0\0ab", "14 bytes follow the JSON; the inputs' binary_data_size are 13"),
        ((8, 6), b"12345678\1\0\0\0a", "tensor 'name' has the binary_data_size 6; 5 bytes are left behind the JSON"),
        ((7, 5), b"1234567\1\0\0\0a", "tensor 'numbers' has 7 bytes; INT32 of shape [1, 2] takes 8"),
        (
            (-8, 5),
            b"12345678\1\0\0\0a",
            "tensor 'numbers' has the binary_data_size -8; 13 bytes are left behind the JSON",
        ),
        ((True, 5), b"1\1\0\0\0a", "tensor 'numbers' has the binary_data_size True; 6 bytes are left behind the JSON"),
        ((8, 2**63), b"12345678", f"tensor 'name' has the binary_data_size {2**63}; 0 bytes are left behind the JSON"),
    ],
)
def test_bytes_behind_the_json_must_be_exactly_those_declared(wire, sizes, tail, message):
    tensors = [without_data(numbers([1, 2])), without_data(names("a"))]
    inputs = [one | {"parameters": {"binary_data_size": size}} for one, size in zip(tensors, sizes, strict=True)]
    assert refused(wire, {"inputs": inputs}, tail=tail) == (400, message)


def test_bytes_without_the_header_that_says_where_they_begin_are_no_json(wire):
    status, message = refused(wire, b'{"inputs": []}\0\0\0\0')
    assert (status, message.startswith("the body is not JSON: ")) == (400, True)


@pytest.mark.parametrize("length", ["-1", "x", "15", "9" * 30, ""])
def test_a_json_length_that_cannot_be_is_refused(wire, length):
    body = b'{"inputs": []}'
    lines = f"POST {PATH}/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: {length}\r\n"
    wire.send(f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = wire.answer()
    wanted = f"Inference-Header-Content-Length is {length!r}; it takes the size of the JSON, 0 to the body's 14"
    assert (answer.status, answer.json) == (400, {"error": wanted})


def test_the_model_s_refusal_and_failure_are_told_in_the_protocol_s_words(wire):
    assert refused(wire, {"inputs": [numbers([-1, 0]), names("a")]}) == (422, "no negative numbers")
    raising = {"inputs": [numbers([0, 0]), names("raise")]}
    assert refused(wire, raising) == (422, "the model cannot use the tensors: ValueError: told to fail")
    status, message = refused(wire, {"inputs": [numbers([0, 0]), names("wrong")]})
    assert (status, message) == (
        500,
        "the model raised ValueError in postprocess: output 'sum' has the shape [2]; declared is [1]",
    )


def test_other_refusals_have_their_own_status(wire, dial, pair_server):
    good = {"inputs": [numbers([1, 2]), names("a")]}
    assert refused(wire, good, path="/v2/models/other/infer") == (
        404,
        "no model 'other' in version '1'; this server has 'lab_models:Pair' in version '1'",
    )
    assert refused(wire, good, path=PATH + "/versions/2/infer")[0] == 404
    assert refused(wire, good, path="/v2/nowhere")[0] == 404
    assert refused(wire, good, path=PATH)[0] == 405
    lines = f"POST {PATH}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    for header in ("Content-Type: text/plain", "Content-Encoding: gzip"):
        wire.send(f"{lines}{header}\r\n\r\n".encode() + b"{}")
        assert wire.answer().status == 415
    wire.send(f"POST {PATH}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000000\r\n\r\n".encode())
    answer = wire.answer()
    assert (answer.status, set(answer.json)) == (413, {"error"})
    assert isinstance(answer.json["error"], str)


def test_a_full_queue_and_a_client_that_left_end_as_in_predict(dial, pair_server, gate, eventually):
    pair_server.configure({"queue.depth": 1})
    before = pair_server.stats()["counters"]
    holder, leaver = dial(pair_server), dial(pair_server)
    path = gate.payload["gate"]
    waiting = json.dumps({"inputs": [numbers([0, 0]), names(f"gate:{path}")]}).encode()
    head = f"POST {PATH}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(waiting)}\r\n\r\n".encode()
    holder.send(head + waiting)
    eventually(lambda: pair_server.stats()["gauge"]["in_flight"] == 1 and pair_server.stats()["queued"] == 0)
    leaver.send(head + waiting)
    eventually(lambda: pair_server.stats()["queued"] == 1)
    answer = infer(dial(pair_server), {"inputs": [numbers([1, 2]), names("a")]})
    assert (answer.status, int(answer.headers["retry-after"]) >= 1) == (503, True)
    assert answer.json["error"].startswith("the queue is full")
    leaver.close()
    eventually(lambda: pair_server.stats()["queued"] == 0)
    gate.open()
    assert holder.answer().status == 200
    after = pair_server.stats()["counters"]
    assert {name: after[name] - before[name] for name in ("ok", "rejected", "cancelled")} == {
        "ok": 1,
        "rejected": 1,
        "cancelled": 1,
    }
    pair_server.configure({"queue.depth": 256})


def test_while_the_model_loads_probes_are_answered_and_requests_are_told_when_to_come_back(dial_to):
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    paths = {"/v2": 200, "/v2/health/live": 200, "/v2/health/ready": 503, PATH + "/ready": 503, PATH: 404}
    with listener, ColdFront(listener, HttpSettings(), None):
        found = {}
        for path in paths:
            wire = dial_to(url)
            wire.get(path)
            found[path] = wire.answer().status
        answer = infer(dial_to(url), {"inputs": []})
    assert found == paths
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.json == {"error": "the service takes no requests at present"}


PLACES = [
    {"preprocess.placement": "threads", "postprocess.placement": "threads", "batch.max_size": 4},
    {"preprocess.placement": "processes", "postprocess.placement": "processes"},
    {"topology": "carry"},
    {"lanes": {"offline": {}}},
    {"replicas": 2},
]


@pytest.mark.parametrize("change", PLACES, ids=str)
def test_tensors_go_the_same_way_wherever_the_stages_run(pair_server, dial, change):
    before = {name: fields.get(pair_server.settings, name) for name in change}
    pair_server.configure(change)
    wire = dial(pair_server)
    asked = {"inputs": [numbers([1, 2], [3, 4]), names("a", "ü")]}
    plain = infer(wire, asked).json
    assert [output["data"] for output in plain["outputs"]] == [[3, 7], ["a!", "ü!"]]
    assert refused(wire, {"inputs": [numbers([-1, 0]), names("a")]}) == (422, "no negative numbers")
    wire.get(PATH + "/stats")
    stats = wire.answer().json["model_stats"][0]["inference_stats"]
    assert stats["success"]["count"] == stats["queue"]["count"] > 0
    pair_server.configure(before)


def test_a_model_without_a_description_takes_and_gives_json_documents(lab, dial):
    wire = dial(lab)
    tensor = {"name": "input", "datatype": "BYTES", "shape": [2, 1], "data": ['{"n": 1}', "null"]}
    answer = infer(wire, {"inputs": [tensor]}, path="/v2/models/lab_models:Probe/infer").json
    (output,) = answer["outputs"]
    assert [json.loads(text)["echo"] for text in output["data"]] == [{"n": 1}, None]


def test_a_body_of_bytes_alone_is_the_one_tensor_of_one_input(lab, dial):
    wire = dial(lab)
    lines = "POST /v2/models/lab_models:Probe/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: 0"
    wire.send(f'{lines}\r\nContent-Length: 10\r\n\r\n"a \\u00e9"'.encode())
    answer = wire.answer()
    length = int(answer.headers["inference-header-content-length"])
    text = answer.body[length + 4 :]
    assert json.loads(text)["echo"] == "a é"
