"""What would a hostile client send? Valid requests, broken in seeded ways, as pieces to be sent one after the other."""

from __future__ import annotations

POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def sized(body, head=POST):
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(body, size):
    parts = (body[start : start + size] for start in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


BODY = b'{"input": [0.5, 1e3, "text", null, {"deep": [1, 2]}], "id": "mine"}'
INFER = POST.replace(b"/predict", b"/v2/models/promise_models:Tensors/infer")
BINARY = (
    b'{"inputs": [{"name": "texts", "shape": [2, 1], "datatype": "BYTES", "parameters": {"binary_data_size": 12}},'
    b'{"name": "numbers", "shape": [2, 2], "datatype": "FP32", "parameters": {"binary_data_size": 16}}]}'
)
TAIL = b"\2\0\0\0ab\2\0\0\0cd" + b"\0\0\x80\x3f" * 4
SEEDS = (
    sized(BODY),
    sized(b'{"inputs": [1, 2, 3], "id": 7}'),
    chunked(BODY, 7),
    chunked(BODY, 1),
    sized(BODY, POST + b"Expect: 100-continue\r\n"),
    sized(BODY, POST + b"Connection: close\r\nPerfkit-Timing: 1\r\n"),
    sized(BODY, POST + b"Perfkit-Id: 12\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"),
    sized(BODY, b"POST /predict HTTP/1.0\r\nContent-Type: application/json\r\n"),
    b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /health/ready HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://localhost\r\n\r\n",
    b"GET /metrics HTTP/1.0\r\n\r\n",
    b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /v2/models/promise_models:Tensors/stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v2/models/promise_models%3ATensors/versions/1/ready HTTP/1.1\r\nHost: localhost\r\n\r\n",
    sized(b'{"ready": true}', POST.replace(b"/predict", b"/v2/repository/index")),
    sized(
        b'{"id": "a", "inputs": [{"name": "numbers", "shape": [1, 2], "datatype": "FP32", "data": [1, 2.5]},'
        b'{"name": "texts", "shape": [1, 3], "datatype": "BYTES", "data": [["a", "", "c"]]}],'
        b'"outputs": [{"name": "scores", "parameters": {"binary_data": true}}]}',
        INFER,
    ),
    sized(BINARY + TAIL, INFER + b"Inference-Header-Content-Length: %d\r\n" % len(BINARY)),
)
CONTROL_SEEDS = (
    b"GET /settings HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /ledger?table=requests&since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /ledger?table=batches&since=12 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /gil-waits HTTP/1.1\r\nHost: localhost\r\n\r\n",
    sized(
        b'{"http": {"keep_alive_s": 0.5}, "http.server_timing": false}',
        b"PATCH /settings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
    ),
)
SMUGGLED = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n"
AMBIGUOUS = (
    POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Content-Length: 5\r\nContent-Length: 60\r\n\r\n{  } " + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: x, chunked, x\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Content-Length: 0x5\r\n\r\n{  } " + SMUGGLED,
    POST + b"Content-Length: +5\r\n\r\n{  } " + SMUGGLED,
    POST + b"Content-Length: 5 5\r\n\r\n{  } " + SMUGGLED,
    POST + b"Content-Length: 5,5\r\n\r\n{  } " + SMUGGLED,
    POST + b"Content-Length: -5\r\n\r\n{  } " + SMUGGLED,
    POST + b"Content-Length: 18446744073709551621\r\n\r\n{  } " + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\n{\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\n{\r\n0\r\n\r\n" + SMUGGLED,
    POST + b"Transfer-Encoding: chunked\r\n\r\n1\n{\n0\n\n" + SMUGGLED,
)
SCRAPS = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"%00",
    b"Content-Length: 5\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"Expect: 100-continue\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Host: evil.example\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"-1",
    b"1e999",
    b"9" * 400,
    b"\\ud800",
    b'"',
    b"[" * 1200,
    b'{"a":' * 1200,
    b"A" * 70_000,
    b"X: y\r\n" * 300,
)


def hostile(chance, seeds=SEEDS):
    """The pieces of one hostile stream."""
    if chance.random() < 0.1:
        return _cut(chance, chance.choice(AMBIGUOUS))
    data = bytearray(b"".join(chance.choices(seeds, k=chance.choice((1, 1, 1, 2, 5)))))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        chance.choice(DEEDS)(chance, data)
    return _cut(chance, bytes(data))


def _cut(chance, data):
    """In one to four pieces."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 3))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]


def _change_byte(chance, data):
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def _insert(chance, data):
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.choice(SCRAPS)


def _insert_header(chance, data):
    ends = [at for at in range(len(data) - 1) if data[at : at + 2] == b"\r\n"]
    if ends:
        at = chance.choice(ends) + 2
        data[at:at] = chance.choice(SCRAPS) if chance.random() < 0.5 else b"X-%d: y\r\n" % chance.randrange(99)


def _delete(chance, data):
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.choice((1, 2, 20))]


def _repeat(chance, data):
    at = chance.randrange(len(data) + 1)
    data[at:at] = data[at : at + chance.choice((1, 20, 200))] * chance.choice((1, 3))


def _truncate(chance, data):
    del data[chance.randrange(len(data) + 1) :]


def _change_number(chance, data):
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if digits:
        at = chance.choice(digits)
        data[at : at + 1] = chance.choice((b"0", b"9", b"-1", b"65536", b"4294967296", b"18446744073709551615", b"1.5"))


def _swap(chance, data):
    at = chance.randrange(len(data) + 1)
    data[:] = data[at:] + data[:at]


DEEDS = (_change_byte, _insert, _insert_header, _delete, _repeat, _truncate, _change_number, _swap)
