"""Models made for tests, a foreign HTTP service, and requests to send to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PLANTED_MODELS = Path(__file__).with_name("planted_models")
NVML_STUB = Path(__file__).with_name("collectors") / "nvml" / "stub.c"


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


@pytest.fixture(scope="session")
def build_nvml(tmp_path_factory) -> Callable[..., Path]:
    """A function that builds the driver's library from a stub, without the functions named, and gives its folder."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the stub of NVIDIA's library cannot be built")

    def build(*without: str) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        hidden = folder / "hidden.map"
        hidden.write_text("{ local: " + "".join(f"{name}; " for name in (*without, "planted")) + "};")
        options = ["-shared", "-fPIC", "-O1", f"-Wl,--version-script={hidden}"]
        subprocess.run([compiler, *options, "-o", str(folder / "libnvidia-ml.so.1"), str(NVML_STUB)], check=True)
        return folder

    return build


@pytest.fixture(scope="session")
def nvml_folder(build_nvml) -> Path:
    """Where the whole stub lies; LD_LIBRARY_PATH leads a child's loader there."""
    return build_nvml()
