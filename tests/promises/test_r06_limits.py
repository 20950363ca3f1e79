"""R6: are limits enforced before anything is buffered, exactly, and at no cost in memory?

Body, headers, chunks, depth, inputs: one below the limit, at it, one above. Target: exactly 413, 431 or 400 above
each limit and 200 up to it; the server's memory grows by at most 16 MiB whatever is sent, also by a million chunks
of one byte.
"""

from __future__ import annotations

import contextlib
import json

import pytest

TARGET = "exact 200 up to each limit and 413, 431 or 400 above it; memory + 16 MiB at most"
MIB = 1 << 20
MOST_BODY_BYTES = 100_000
MOST_HEADER_BYTES = 64 << 10
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SMALL = {"http.max_body_bytes": MOST_BODY_BYTES, "queue.depth": 100}


def sized(body):
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(body, size=1000):
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return (
        HEAD
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        + b"0\r\n\r\n"
    )


def of_length(count):
    return b'{"input": "%b"}' % (b"x" * (count - 13))


def nested(depth):
    """A document of so many levels, itself included."""
    return sized(b'{"input": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}")


def header_bytes(count):
    """Headers and target of so many bytes, as the limit counts them."""
    others = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
    value = count - len(b"/health/live") - len(b"Hostlocalhost") - len(b"X-Long")
    return others + b"X-Long: " + b"y" * value + b"\r\n\r\n"


def headers(count):
    names = b"".join(b"X-%d: y\r\n" % number for number in range(count - 1))
    return b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n" + names + b"\r\n"


def inputs(count):
    return sized(json.dumps({"inputs": list(range(count))}).encode())


def id_of(count):
    return sized(b'{"input": 1, "id": "%b"}' % (b"i" * count))


LIMITS = {
    "body": (lambda count: sized(of_length(count)), MOST_BODY_BYTES, (413, "body_too_large")),
    "chunked body": (lambda count: chunked(of_length(count)), MOST_BODY_BYTES, (413, "body_too_large")),
    "one-byte chunks": (lambda count: chunked(of_length(count), 1), MOST_BODY_BYTES, (413, "body_too_large")),
    "header bytes": (header_bytes, MOST_HEADER_BYTES, (431, "headers_too_large")),
    "headers": (headers, 256, (431, "headers_too_large")),
    "depth": (nested, 1024, (400, "bad_json")),
    "inputs": (inputs, 100, (400, "bad_shape")),
    "id": (id_of, 256, (400, "bad_id")),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("step", [1 << 20, 7919], ids=["at once", "in pieces"])
def test_up_to_the_limit_is_served_and_one_above_is_refused(small, dial, name, step):
    make, limit, refusal = LIMITS[name]
    found = []
    for count in (limit - 1, limit, limit + 1):
        wire = dial(small.port)
        send_in_pieces(wire, make(count), step)
        status, _, body = wire.answer()
        found.append(200 if status == 200 else (status, json.loads(body)["error"]["code"]))
    assert found == [200, 200, refusal]


def send_in_pieces(wire, data, step):
    with contextlib.suppress(ConnectionError):  # refused and cut off before all was sent
        for start in range(0, len(data), step):
            wire.send(data[start : start + step])


@pytest.fixture(scope="module")
def small(serve_module):
    """A server with small limits, shared by the tests of this module."""
    return serve_module(changes=SMALL)


def tensors(numbers, texts, length=""):
    """A request in two tensors of these shapes, of which only two numbers and a text really come."""
    first = f'{{"name": "numbers", "datatype": "FP32", "shape": {numbers}, "parameters": {{"binary_data_size": 8}}}}'
    second = f'{{"name": "texts", "datatype": "BYTES", "shape": {texts}, "parameters": {{"binary_data_size": 5}}}}'
    document = f'{{"inputs": [{first}, {second}]}}'.encode()
    head = HEAD.replace(b"/predict", b"/v2/models/promise_models:Tensors/infer")
    body = document + b"\0" * 8 + b"\1\0\0\0x"
    header = b"Inference-Header-Content-Length: %b\r\n" % (length.encode() or b"%d" % len(document))
    return head + header + b"Content-Length: %d\r\n\r\n" % len(body) + body


OVERFLOWING = [
    tensors("[1, 3]", "[1, 1]"),
    tensors("[0, 2]", "[0, 1]"),
    tensors("[-1, 2]", "[1, 1]"),
    tensors("[1, 2]", "[1, 0]"),
    tensors("[1, 2]", "[1, 1073741824]"),
    tensors("[1, 2]", "[1, 4611686018427387904]"),
    tensors("[1, 2]", "[1, 9223372036854775807]"),
    tensors("[1, 2]", "[1, 18446744073709551616]"),
    tensors("[4294967296, 2]", "[4294967296, 4294967296]"),
    tensors("[9223372036854775808, 2]", "[9223372036854775808, 2]"),
    tensors("[1, 2, 1]", "[1, 1]"),
    tensors("[[1], 2]", "[1, 1]"),
    tensors("[1, 2.0]", "[1, 1]"),
    tensors("[true, 2]", "[1, 1]"),
    tensors("[1, 2]", "[1, 1]", "99999999999999999999"),
    tensors("[1, 2]", "[1, 1]", "-1"),
    tensors("[1, 2]", "[1, 1]", "100000"),
]


def test_shapes_that_would_overflow_are_refused_before_anything_is_made_of_them(serve, dial):
    server = serve("promise_models:Tensors")
    wire = dial(server.port)
    wire.send(tensors("[1, 2]", "[1, 1]"))
    assert wire.answer()[0] == 200
    before_bytes = server.memory_bytes()
    for request in OVERFLOWING:
        wire.send(request)
    assert [wire.answer()[0] for _ in OVERFLOWING] == [400] * len(OVERFLOWING)
    assert server.memory_bytes() - before_bytes < 16 * MIB


def test_nothing_is_decompressed(serve, dial):
    """There is no limit to hold on what a few bytes may become: no encoding is taken."""
    server = serve()
    wire = dial(server.port)
    for encoding in (b"gzip", b"deflate", b"br", b"zstd", b"identity, gzip"):
        wire.send(HEAD + b"Content-Encoding: %b\r\nContent-Length: 2\r\n\r\n{}" % encoding)
        status, _, body = wire.answer()
        assert (status, json.loads(body)["error"]["code"]) == (415, "content_encoding")


FLOODS = {
    "announced": lambda times: [HEAD + b"Content-Length: 99999999999\r\n\r\n"],
    "chunks of one byte": lambda times: [HEAD + b"Transfer-Encoding: chunked\r\n\r\n"] + [b"1\r\nx\r\n" * 1000] * times,
    "one endless chunk": lambda times: (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"] + [b"x" * 6000] * times
    ),
    "chunk extensions": lambda times: (
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n"] + [b"1;" + b"e" * 5990 + b"\r\nx\r\n"] * times
    ),
    "trailers": lambda times: [HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"] + [b"t: x\r\n" * 1000] * times,
    "tiny headers": lambda times: [HEAD] + [tiny_headers(part) for part in range(times)],
    "an endless header": lambda times: [HEAD + b"X: "] + [b"x" * 6000] * times,
    "an endless target": lambda times: [b"GET /"] + [b"x" * 6000] * times,
    "empty lines": lambda times: [b"\r\n" * 3000] * times,
}


def tiny_headers(part):
    return b"".join(b"%x:\r\n" % number for number in range(part * 1000, part * 1000 + 1000))


def flood(server, dial, times, clients=4):
    """Send every flood from several clients at once; returns the growth of memory at its worst, and every status."""
    dial(server.port).ask("/predict", {"input": 1})
    before_bytes, most_bytes, statuses = server.memory_bytes(), 0, {}
    for name, make in FLOODS.items():
        wires = [dial(server.port) for _ in range(clients)]
        for piece in make(times):
            for wire in wires:
                with contextlib.suppress(ConnectionError):
                    wire.send(piece)
            most_bytes = max(most_bytes, server.memory_bytes())
        statuses[name] = {status_of(wire, is_expected=ANSWERS[name] != {0}) for wire in wires}
    return most_bytes - before_bytes, statuses


def status_of(wire, *, is_expected):
    """The status of the answer; 0 when there is none yet."""
    wire.socket.settimeout(30.0 if is_expected else 0.1)
    try:
        return int(wire.socket.recv(12).split()[1])
    except (TimeoutError, ConnectionError, IndexError):
        return 0


ANSWERS = {
    "announced": {413},
    "chunks of one byte": {413},
    "one endless chunk": {413},
    "chunk extensions": {0},  # nothing of them is kept: they cost their sender, until the deadline of the request
    "trailers": {431},
    "tiny headers": {431},
    "an endless header": {431},
    "an endless target": {431},
    "empty lines": {431},
}


def test_floods_are_refused_and_cost_little_memory(serve, dial, told):
    server = serve(changes={"http.max_body_bytes": 20_000})
    grown_bytes, statuses = flood(server, dial, 30)
    told("R6", TARGET, floods=len(statuses), grown_bytes=grown_bytes)
    assert statuses == ANSWERS
    assert grown_bytes < 16 * MIB


@pytest.mark.slow
def test_a_million_chunks_of_one_byte_cost_little_memory(serve, dial, told):
    server = serve()
    dial(server.port).ask("/predict", {"input": 1})
    before_bytes, most_bytes = server.memory_bytes(), 0
    wire = dial(server.port)
    wire.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(1_000):
        wire.send(b"1\r\nx\r\n" * 1_000)
        most_bytes = max(most_bytes, server.memory_bytes())
    wire.send(b"0\r\n\r\n")
    status, _, body = wire.answer()
    told("R6", TARGET, one_byte_chunks=1_000_000, grown_bytes=most_bytes - before_bytes)
    assert (status, json.loads(body)["error"]["code"]) == (400, "bad_json")
    assert most_bytes - before_bytes < 16 * MIB


def test_the_measure_of_memory_sees_what_bodies_hold(serve, dial, eventually):
    """The control of the tests above: within the limits, and noticed."""
    server = serve()
    dial(server.port).ask("/predict", {"input": 1})
    before_bytes = server.memory_bytes()
    for _ in range(4):
        dial(server.port).send(HEAD + b"Content-Length: 8000000\r\n\r\n" + b"x" * 7_900_000)
    eventually(lambda: server.memory_bytes() - before_bytes > 16 * MIB)
