"""What do the server's tests share: parts that stand in for the device, and ways to wait without guessing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from perfkit import fields
from perfkit.measuring.service import Service, launch
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.job import Job
from perfkit.serving.server.plant import Books, Plant
from perfkit.serving.server.replicas import build
from perfkit.settings.server import ServerSettings
from perfkit.settings.surroundings import LedgerSettings
from wire import Wire, dialling


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


@pytest.fixture
def dial() -> Iterator[Callable[[Service], Wire]]:
    """Opens raw connections to a service, and closes them after the test."""
    with dialling() as connect:
        yield lambda service: connect(urlsplit(service.url).port)


@pytest.fixture
def dial_to() -> Iterator[Callable[[str], Wire]]:
    """Opens raw connections to a URL, and closes them after the test."""
    with dialling() as connect:
        yield lambda url: connect(urlsplit(url).port)


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
