"""Does a path find its handler, also when a part of it is a name?"""

from __future__ import annotations

import json

import pytest

from perfkit.serving.server.connection import Request
from perfkit.serving.server.router import Paths, Router

TABLE = {
    b"/v2": {b"GET": "server"},
    b"/v2/models/stats": {b"GET": "all"},
    b"/v2/models/{name}": {b"GET": "model"},
    b"/v2/models/{name}/versions/{version}/ready": {b"GET": "version"},
}


@pytest.mark.parametrize(
    ("path", "handler", "texts"),
    [
        (b"/v2", "server", ()),
        (b"/v2/models/stats", "all", ()),
        (b"/v2/models/noop", "model", ("noop",)),
        (b"/v2/models/simulated:a10", "model", ("simulated:a10",)),
        (b"/v2/models/simulated%3Aa%2F10", "model", ("simulated:a/10",)),
        (b"/v2/models/%ff", "model", ("\ufffd",)),
        (b"/v2/models/", "model", ("",)),
        (b"/v2/models/m/versions/1/ready", "version", ("m", "1")),
    ],
)
def test_a_path_finds_its_handler_and_the_texts_in_it(path, handler, texts):
    assert Paths(TABLE).find(path) == ({b"GET": handler}, texts)


@pytest.mark.parametrize("path", [b"", b"/", b"/v2/", b"/v2/models", b"/v2/models/m/ready", b"/v2/models/m/versions/1"])
def test_a_path_that_is_in_no_table_finds_none(path):
    assert Paths(TABLE).find(path) == (None, ())


class Listening:
    """A connection that keeps the answer."""

    def answer(self, reply, *, closes):
        self.status = int(reply.split()[1])
        self.document = json.loads(reply.partition(b"\r\n\r\n")[2])


def refusal(target, token=None, **headers):
    connection = Listening()
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    Router({b"/predict": {}, b"/v2": {}}, token).handle(Request(connection, b"GET", target, raw, b"", 0, True))
    return connection.status, connection.document


def test_refusals_come_in_the_words_of_the_protocol_that_the_path_belongs_to():
    message = "send the header Authorization: Bearer <token>"
    assert refusal(b"/predict", "secret") == (401, {"error": {"code": "token", "message": message}})
    assert refusal(b"/v2/models/m", "secret", authorization="Bearer other") == (401, {"error": message})
    assert refusal(b"/v2/models/m", "secret", authorization="Bearer secret")[0] == 404
    assert refusal(b"/v2", host="evil.example")[0] == 403
    assert refusal(b"/v2") == (405, {"error": "this path takes "})
