"""Models made for tests, a foreign HTTP service, and requests to send to them."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PLANTED_MODELS = Path(__file__).with_name("planted_models")


@pytest.fixture
def planted_models(monkeypatch) -> str:
    """The module of test models, importable here and in the processes started from here."""
    monkeypatch.syspath_prepend(str(PLANTED_MODELS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PLANTED_MODELS), os.environ.get("PYTHONPATH", "")]))
    return "planted"


@pytest.fixture
def payloads(tmp_path) -> str:
    """A file with two request bodies."""
    path = tmp_path / "bodies.jsonl"
    path.write_text('{"input": 1}\n{"input": 2}\n')
    return str(path)


@pytest.fixture
def leftovers(tmp_path, monkeypatch) -> Callable[[], list[str]]:
    """What has been left in the temporary folder of processes started from here."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return lambda: sorted(os.listdir(folder))


class _Foreign(BaseHTTPRequestHandler):
    """Somebody else's service: answers each POST, knows nothing of perfkit."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = getattr(self.server, "status", 200)
        body = getattr(self.server, "body", b"{}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PATCH = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def foreign() -> Iterator[ThreadingHTTPServer]:
    """A service that is not perfkit's; `status` and `body` can be set."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Foreign)
    server.daemon_threads = True
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def error_body() -> Callable[[str], bytes]:
    """An error as perfkit's own server words it."""
    return lambda message: json.dumps({"error": {"code": "any", "message": message}}).encode()
