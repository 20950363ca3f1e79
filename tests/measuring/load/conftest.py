"""A loopback service that answers as a test tells it to, and a phase of load run in this process."""

import asyncio
import contextlib
import dataclasses
import socket
import threading

import pytest

from perfkit.clock import REAL_CLOCK
from perfkit.measuring.load.engine import Engine
from perfkit.measuring.load.placement import Placement
from perfkit.measuring.load.report import describe_phase
from perfkit.measuring.load.samples import SampleWriter, read_samples
from perfkit.measuring.load.script import write_script
from perfkit.measuring.load.spec import LoadSpec
from perfkit.measuring.load.target import find_target

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclasses.dataclass
class Request:
    """One request as the service read it."""

    head: str
    body: bytes

    @property
    def request_id(self):
        return int(self.header("perfkit-id"))

    def header(self, name):
        lines = (line.partition(":") for line in self.head.split("\r\n")[1:])
        return next((value.strip() for key, _, value in lines if key.lower() == name), None)


class Service:
    """Answers each request by `answer(request, writer)`; False closes the connection. Runs in a thread of its own."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        self.connections = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="test-service")

    def __enter__(self):
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_):
        self.stop()
        self._thread.join()

    def stop(self):
        with contextlib.suppress(RuntimeError):  # stopped before
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def _run(self):
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._writers = set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader, writer):
        self.connections += 1
        self._writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._serve_one(reader, writer):
                pass
        self._writers.discard(writer)
        writer.close()

    async def _serve_one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        request = Request(head=head, body=b"")
        request.body = await reader.readexactly(int(request.header("content-length")))
        self.requests.append(request)
        goes_on = await self.answer(request, writer)
        await writer.drain()
        return goes_on is not False and request.header("connection") != "close"


@pytest.fixture
def serve():
    """Start services that are stopped at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(Service(answer))


@pytest.fixture
def always():
    """An answer that is the same bytes every time."""

    def make(reply, goes_on=True):
        async def answer(_request, writer):
            writer.write(reply)
            return goes_on

        return answer

    return make


@pytest.fixture
def dead_port():
    """A port on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def make_spec(tmp_path):
    """A spec for a port and a load, with a file of three payloads."""
    payloads = tmp_path / "payloads.jsonl"
    payloads.write_text('{"input": "one"}\n{"input": "two 100 %"}\n{"input": "trois"}\n', "utf-8")

    def make(port, load, seconds, **changes):
        spec = LoadSpec(
            url=f"http://127.0.0.1:{port}/predict",
            load=load,
            seconds=seconds,
            payloads=payloads,
            samples=tmp_path / "load.samples",
            report=tmp_path / "load.json",
        )
        return dataclasses.replace(spec, **changes)

    return make


@dataclasses.dataclass
class Phase:
    """A finished phase: the report, the samples as lists, and the spec that led to them."""

    report: dict
    samples: dict
    spec: LoadSpec


@pytest.fixture
def run_phase(make_spec):
    """Run a phase in this process."""

    def run(port, load, seconds, prepare=lambda engine: None, **changes):
        spec = make_spec(port, load, seconds, **changes)
        target = find_target(spec.url)
        samples = SampleWriter(spec.samples)
        engine = Engine(spec, target, write_script(spec, target), samples)
        prepare(engine)
        engine.run(REAL_CLOCK.now_ns())
        samples.close()
        engine.close()
        report = describe_phase(spec, engine, Placement(usable_cores=2, cpus=(0, 1), nice=0, refused=()))
        columns = {name: values.tolist() for name, values in read_samples(spec.samples).items()}
        return Phase(report=report, samples=columns, spec=spec)

    return run
