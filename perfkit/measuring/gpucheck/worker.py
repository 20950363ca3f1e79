"""How does a check's thread use the device: one call at a time, or as a lane serves requests?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench, Work
from perfkit.serving.devices.device import Device, DeviceInstants, Span
from perfkit.serving.devices.lane import Batch, Lane

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One call: host instants in nanoseconds, and the device's own time between its two events."""

    outputs: Any
    submitted_ns: int
    launched_ns: int
    ended_ns: int
    left_ns: int
    device_ns: int

    @property
    def latency_s(self) -> float:
        """From the submission to the end on the device; how late the thread woke is no part of it."""
        return (self.ended_ns - self.submitted_ns) / NS_PER_S

    @property
    def device_s(self) -> float:
        """Time between the call's two events."""
        return self.device_ns / NS_PER_S


class Worker:
    """A thread's stream and events. For the thread that opened it."""

    def __init__(self, device: Device, priority: int) -> None:
        self.device = device
        self.stream = device.stream(priority)
        self.span = self.new_span()

    def new_span(self) -> Span:
        """Two events; the thread may block on the second."""
        return Span(self.device.event(), self.device.event(is_awaited=True))

    def start(self, work: Work, inputs: Any = None) -> tuple[int, int, Any]:
        """Launch a call: when it was submitted, when it was launched, and its outputs, which are not there yet."""
        submitted_ns = self.device.clock.now_ns()
        outputs = self.device.run(work, inputs, self.stream, self.span)
        return submitted_ns, self.device.clock.now_ns(), outputs

    def call(self, work: Work, inputs: Any = None) -> Timed:
        """Launch a call and wait for its end."""
        submitted_ns, launched_ns, outputs = self.start(work, inputs)
        self.device.synchronize(self.span.ended)
        return Timed(
            outputs=outputs,
            submitted_ns=submitted_ns,
            launched_ns=launched_ns,
            ended_ns=self.device.instant_ns(self.span.ended),
            left_ns=self.device.clock.now_ns(),
            device_ns=self.device.elapsed_ns(self.span.started, self.span.ended),
        )

    def put(self, batch: Batch) -> Any:
        """A batch's inputs on the device; blocks until they are there."""
        inputs = self.device.copy_in(batch.inputs, batch.nbytes, self.stream, self.span)
        self.device.synchronize(self.span.ended)
        return inputs


@contextmanager
def worker(bench: Bench, priority: int = 0) -> Iterator[Worker]:
    """A worker on the calling thread."""
    device = bench.device
    device.enter_worker(1)
    opened = Worker(device, priority)
    try:
        yield opened
    finally:
        device.release(opened.stream, priority)
        device.leave_worker()


@contextmanager
def lane(bench: Bench, name: str) -> Iterator[Lane]:
    """A lane on the calling thread, as the server's workers have one."""
    opened = bench.device.open_lane(name)
    try:
        yield opened
    finally:
        opened.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request through a lane."""

    entered_ns: int
    left_ns: int
    instants: DeviceInstants

    @property
    def latency_s(self) -> float:
        """As its thread saw it."""
        return (self.left_ns - self.entered_ns) / NS_PER_S

    @property
    def wake_lag_s(self) -> float:
        """From the end of the device's work to the thread's going on."""
        ended_ns = max(self.instants.compute_ended_ns, self.instants.d2h_ended_ns)
        return (self.left_ns - ended_ns) / NS_PER_S


def request(bench: Bench, through: Lane, work: Work, batch: Batch) -> tuple[Any, Request]:
    """Serve one request; its outputs, and when what happened."""
    now_ns = bench.device.clock.now_ns
    entered_ns = now_ns()
    outputs, instants = through.run(work, batch)
    return outputs, Request(entered_ns=entered_ns, left_ns=now_ns(), instants=instants)


def together(count: int, work: Callable[[int, Callable[[], None]], Result], name: str = "check") -> list[Result]:
    """What `work(number, begin)` gives in so many threads; raises the first error.

    Each thread prepares, calls `begin` once, and goes on when all have done so.
    """
    gate = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def body(number: int) -> None:
        try:
            results[number] = work(number, lambda: _pass(gate))
        except BaseException as error:
            if not isinstance(error, threading.BrokenBarrierError):
                errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=body, args=(at,), name=f"{name}-{at}", daemon=True) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def _pass(gate: threading.Barrier) -> None:
    gate.wait()


def quantile(values: Sequence[float], share: float) -> float:
    """The value that a share of the values does not exceed; raises ValueError without values."""
    if not values:
        raise ValueError("no values were measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
