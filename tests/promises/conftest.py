"""What do the promises' tests share: server processes, raw clients, load, and a line that tells the measured figure.

Each promise of the table in the README is one file here. A small size of it runs in the default suite, the full
size is marked `slow` and runs in `make soak`. With PERFKIT_FIGURES=FOLDER every figure is also left there as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from perfkit import fields
from perfkit.clock import calendar_now
from perfkit.measuring.control import Endpoint
from perfkit.measuring.load import client
from perfkit.measuring.load.client import GeneratorProcess
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.spec import LoadSpec
from perfkit.settings.server import ServerSettings
from wire import PATIENCE_S, Wire, dialling

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(Path(__file__).parent))  # the tests here share modules that are no tests
_FIGURES = "figures of a promise"


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Tells the measured figure of a promise: one line after the run, and a file for the table of the full sizes."""
    size = "full" if request.node.get_closest_marker("slow") else "smoke"

    def tell(promise: str, target: str, **figures: Any) -> None:
        shown = ", ".join(f"{name} {_short(value)}" for name, value in figures.items())
        # A property of the test comes with its report, also from a process of its own.
        request.node.user_properties.append((_FIGURES, f"{promise} ({size}): {shown}; target: {target}"))
        if folder := os.environ.get("PERFKIT_FIGURES"):
            rounded = {name: _rounded(value) for name, value in figures.items()}
            row = {"promise": promise, "test": request.node.name, "size": size, "target": target, "figures": rounded}
            _leave(Path(folder), row | {"date": calendar_now()[:10], "cores": len(os.sched_getaffinity(0))})

    return tell


def _leave(folder: Path, row: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = "".join(filter(str.isdigit, row["promise"]))
    name = f"r{int(number):02}_{re.sub('[^A-Za-z0-9.]+', '_', row['test'].removeprefix('test_')).strip('_')}.json"
    text = json.dumps(row, indent=2, ensure_ascii=False, default=lambda value: value.item())
    (folder / name).write_text(text + "\n", "utf-8")


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The figures, after all tests."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    if lines := [text for report in reports for name, text in report.user_properties if name == _FIGURES]:
        terminalreporter.section("promises, as measured")
        for line in sorted(lines, key=lambda line: (int(re.sub(r"\D", "", line.split()[0])), line)):
            terminalreporter.line(line)


class Server:
    """A server process that a test started, its addresses, and what it said last."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self.log = log

    def await_ready(self) -> Server:
        """Read the ready line; fails with the process's own words."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        ready = json.loads(line)
        self.port = urlsplit(ready["url"]).port
        self.url, self.control = ready["url"], Endpoint(ready["control_url"])
        return self

    def stats(self) -> dict[str, Any]:
        """Counters and gauges."""
        return self.control.get("/stats")

    def configure(self, changes: dict[str, Any]) -> None:
        """Change live settings."""
        self.control.send("PATCH", "/settings", changes)

    def memory_bytes(self) -> int:
        """What the process holds in memory now."""
        return psutil.Process(self.pid).memory_info().rss

    def last_words(self) -> dict[str, Any]:
        """What `observed_server.py` counted, once the process has ended."""
        return json.loads(self.process.communicate(timeout=PATIENCE_S)[0].strip().splitlines()[-1])


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts server processes that count for the test; ends them after it."""
    with _servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def serve_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """The same for servers that the tests of a module share."""
    with _servers(tmp_path_factory) as start:
        yield start


@contextlib.contextmanager
def _servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    folder = tmp_path_factory.mktemp("servers")
    started: list[subprocess.Popen[str]] = []
    paths = os.pathsep.join(filter(None, [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))

    def start(model: str = "noop", *, env: dict[str, str] | None = None, ready: bool = True, **given: Any) -> Server:
        spec = {name: given.pop(name) for name in ("host", "port", "token") if name in given}
        settings = fields.replace(ServerSettings(model=model), given.pop("changes", {}))
        spec["settings"] = fields.to_nested(settings)
        command = [sys.executable, str(Path(__file__).with_name("observed_server.py")), json.dumps(spec)]
        environment = os.environ | {"PYTHONPATH": paths} | (env or {})
        log = folder / f"{len(started)}.log"
        with log.open("wb") as stderr:
            pipes = {"stdout": subprocess.PIPE, "stderr": stderr, "text": True}
            started.append(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))
        server = Server(started[-1], log)
        return server.await_ready() if ready else server

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def generate(tmp_path: Path) -> Iterator[Callable[..., GeneratorProcess]]:
    """Starts perfkit's own load generators against a server of the test; ends them after it."""
    started: list[GeneratorProcess] = []

    def start(server: Server, load: OpenLoop | ClosedLoop, seconds: float, document: Any = 1) -> GeneratorProcess:
        folder = tmp_path / f"load-{len(started)}"
        folder.mkdir()
        payloads = folder / "payloads.jsonl"
        payloads.write_text(json.dumps({"input": document}) + "\n", "utf-8")
        files = {"payloads": payloads, "samples": folder / "samples", "report": folder / "report.json"}
        spec = LoadSpec(url=f"{server.url}/predict", load=load, seconds=seconds, seed=len(started), **files)
        started.append(client.start(spec, folder))
        return started[-1]

    yield start
    for generator in started:
        generator.stop()


@pytest.fixture
def dial() -> Iterator[Callable[..., Wire]]:
    """Opens raw connections to a port, and closes them after the test."""
    with dialling() as connect:
        yield connect


@pytest.fixture
def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
