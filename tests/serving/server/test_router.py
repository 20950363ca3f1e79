"""Does a path find its handler, also when a part of it is a name?"""

from __future__ import annotations

import pytest

from perfkit.serving.server.router import Paths

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
