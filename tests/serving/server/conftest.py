"""What do the server's tests share: parts that stand in for the device, and ways to wait without guessing."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest

from perfkit import fields
from perfkit.measuring.service import Service, launch
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.job import Job
from perfkit.serving.server.pipeline import Books, Plant
from perfkit.serving.server.replicas import build
from perfkit.settings import LedgerSettings, ServerSettings

_PATIENCE_S = 20.0


class Finished:
    """Where finished jobs go: an outbox without an event loop. Any thread puts."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def put(self, jobs: Any) -> None:
        self.jobs.extend(jobs)

    def call_at(self, at_ns: int, call: Callable[[], None]) -> Any:
        """There is no loop to call back: it never rings."""
        return SimpleNamespace(cancel=lambda: None)


@pytest.fixture
def finished() -> Finished:
    """An outbox that keeps what it gets."""
    return Finished()


@pytest.fixture
def new_job() -> Callable[..., Job]:
    """Makes jobs that nobody waits for."""

    def make(payload: Any = None, *, row: int = 0, deadline_ns: int = 0) -> Job:
        return Job(payload, receiver=None, row=row, deadline_ns=deadline_ns)

    return make


class Wire:
    """A raw client: sends bytes as they are, reads whole answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        self._reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, document: Any, *headers: str, path: str = "/predict") -> None:
        body = json.dumps(document).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
        self.send("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)

    def get(self, path: str, *headers: str, method: str = "GET") -> None:
        self.send("\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode())

    def answer(self) -> Answer:
        """The next answer; fails when the server has closed the connection."""
        status_line = self._reader.readline()
        assert status_line, "the connection was closed before an answer"
        headers = {}
        while (line := self._reader.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        body = self._reader.read(int(headers.get("content-length", 0)))
        return Answer(int(status_line.split()[1]), headers, body)

    def is_at_end(self) -> bool:
        """Whether the server has closed its side; blocks until it sends or closes."""
        return self._reader.read(1) == b""

    def close(self) -> None:
        self._reader.close()
        self.socket.close()


class Answer(NamedTuple):
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> tuple[int, str]:
        """Status and error code."""
        return self.status, self.json["error"]["code"]


@pytest.fixture
def dial() -> Iterator[Callable[[Service], Wire]]:
    """Opens raw connections to a service, and closes them after the test."""
    wires: list[Wire] = []

    def connect(service: Service) -> Wire:
        wires.append(Wire(urlsplit(service.url).port or 0))
        return wires[-1]

    yield connect
    for wire in wires:
        wire.close()


@pytest.fixture(scope="module")
def models_on_path() -> Iterator[None]:
    """Lets child processes import `lab_models`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.syspath_prepend(str(Path(__file__).parent))  # launched servers can import what this process can
        yield


@pytest.fixture(scope="module")
def lab_server(models_on_path: None) -> Iterator[Service]:
    """A server whose model does what the payload says; shared by the tests of a module."""
    with launch(model="lab_models:Probe", ledger={"capacity": 4096}) as service:
        yield service


@pytest.fixture
def lab(lab_server: Service) -> Iterator[Service]:
    """The lab's server, at its first settings before and after each test, and idle at both times."""
    first = {
        name: fields.get(lab_server.settings, name) for name, _, facts in fields.leaves(ServerSettings) if facts["live"]
    }
    yield lab_server
    lab_server.configure(first | {f"lanes.{name}": None for name in lab_server.settings.lanes})


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Holds the model until it is opened."""
    return Gate(tmp_path / "gate")


class Gate:
    """A file for which a lab model's predict waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.payload = {"gate": str(path)}

    def open(self) -> None:
        self._path.touch()


@pytest.fixture
def dial_to() -> Iterator[Callable[[str], Wire]]:
    """Opens raw connections to a URL, and closes them after the test."""
    wires: list[Wire] = []

    def connect(url: str) -> Wire:
        wires.append(Wire(urlsplit(url).port or 0))
        return wires[-1]

    yield connect
    for wire in wires:
        wire.close()


class Gated:
    """Doubles numbers as soon as its gate is open; zeros, its example, pass at once."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.batches: list[list[Any]] = []

    def example(self) -> Any:
        return 0

    def weights(self) -> list[Any]:
        return [np.arange(5.0), np.arange(3)]

    def predict(self, inputs: Sequence[Any]) -> list[Any]:
        if inputs != [0] * len(inputs):
            self.batches.append(list(inputs))
            assert self.gate.wait(20)
        return [2 * item for item in inputs]


class Shop:
    """A started service, its model, and what it was asked."""

    def __init__(self, outbox: Any, changes: dict[str, Any], device: Any) -> None:
        settings = fields.replace(ServerSettings(model="x:Y", ledger=LedgerSettings(capacity=1024)), changes)
        self.model = Gated()
        self.books = Books(settings.ledger)
        self.device = device or CpuDevice()
        plant = Plant(model=complete(self.model), device=self.device, outbox=outbox, books=self.books)
        self.pipeline = build(settings, plant)
        self.pipeline.start()

    def ask(self, *numbers: int, lane: int = 0) -> tuple[list[Job], Any]:
        """Jobs of one request, and why they were not let in."""
        jobs = [Job(number, receiver=None, row=self.books.requests.open(), deadline_ns=0) for number in numbers]  # type: ignore[arg-type]
        for job in jobs:
            job.lane = lane
        return jobs, self.pipeline.enter(jobs)

    def close(self) -> None:
        self.model.gate.set()
        self.pipeline.close()


@pytest.fixture
def open_shop(finished: Any) -> Iterator[Callable[..., Shop]]:
    """Opens services over one outbox, and closes them."""
    shops: list[Shop] = []

    def make(device: Any = None, **changes: Any) -> Shop:
        shops.append(Shop(finished, changes, device))
        return shops[-1]

    yield make
    for shop in shops:
        shop.close()
