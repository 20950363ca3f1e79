"""What does the simulated accelerator look like to a lane and to a simulated model?

To a lane it is a device like any other. A simulated model also tells it what its stages cost
(`work`, `launch`) and which requests are in the service (`enter`). Every figure is simulated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock
from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, Span
from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.memory import MemoryAccount
from perfkit.serving.devices.simulated.driver import Driver
from perfkit.serving.devices.simulated.engine import Operation, Stream
from perfkit.serving.devices.simulated.presence import Presence, Visit
from perfkit.serving.devices.simulated.preset import COMPUTE, DEFAULT_PRESET, HostPart, Preset, Step


class SimulatedEvent:
    """The start or the end of an operation, or the host instant at which nothing was left to do."""

    __slots__ = ("at_ns", "is_start", "operation")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Make it empty again."""
        self.at_ns = 0
        self.is_start = False
        self.operation: Operation | None = None


class _Worker(threading.local):
    """The run call of the calling thread."""

    stream: Stream | None = None
    first: Operation | None = None
    last: Operation | None = None


class SimulatedDevice:
    """A timeline behind the device protocol. Safe from several threads."""

    name = "simulated"
    is_simulated = True
    has_copies = True

    def __init__(self, preset: Preset = DEFAULT_PRESET, *, seed: int = 0, clock: Clock = REAL_CLOCK) -> None:
        self.preset = preset
        self.clock = clock
        self._worker = _Worker()
        self._presence = Presence()
        self._driver = Driver(preset, clock, seed)
        self._account = MemoryAccount(preset.device.memory_bytes)
        self._weights = self.buffer(preset.device.weights_bytes)

    def enter(self) -> Visit:
        """A request enters the service; those inside at once decide the contention."""
        return self._presence.enter()

    @property
    def in_flight(self) -> int:
        """Requests in the service."""
        return len(self._presence)

    def work(self, part: HostPart) -> None:
        """Do a stage's host work: blocks the calling thread, and others where the work is serial."""
        submitted = self._driver.submit(Stream(), self._host_steps(part))
        if submitted is not None:
            self._driver.wait(submitted[1])

    def launch(self, part: HostPart, size: int) -> None:
        """Queue a call's host work, then its device work, on the stream of the run call; blocks nobody."""
        stream = self._stream_of_run()
        dispatch = self._driver.submit(Stream(), self._host_steps(part))
        if dispatch is not None:
            self._driver.await_operation(stream, dispatch[1])
        self._submit_in_run(stream, self.preset.compute_step(size))

    def compute(self, seconds: float) -> None:
        """Device work of an exact length on the stream of the run call; blocks nobody."""
        self._submit_in_run(self._stream_of_run(), Step(COMPUTE, seconds * NS_PER_S, 0.0))

    def prepare(self, intra_op_threads: int) -> None:
        """Nothing to set: simulated work uses no threads of its own."""

    def place(self, tensor: Any) -> Any:
        """The tensor itself: nothing is really copied."""
        return tensor

    def enter_worker(self, intra_op_threads: int) -> None:
        """Nothing to set."""

    def leave_worker(self) -> None:
        """Nothing to undo."""

    def effective_threads(self) -> int:
        """Always 1."""
        return 1

    def stream(self, priority: int = 0) -> Stream:
        """A queue of device work that runs in order; a smaller priority goes first."""
        return Stream(priority)

    def event(self) -> SimulatedEvent:
        """An empty event."""
        return SimulatedEvent()

    def record(self, event: SimulatedEvent, stream: Stream) -> None:
        """The event happens when everything submitted to the stream so far is done."""
        event.clear()
        event.operation, event.at_ns = self._driver.tail(stream)

    def wait(self, stream: Stream, event: SimulatedEvent) -> None:
        """Let the stream's next work start after the event; does not block the caller."""
        if event.operation is not None:
            self._driver.await_operation(stream, event.operation)

    def synchronize(self, event: SimulatedEvent) -> None:
        """Block the calling thread until the event has happened; an empty event has."""
        if event.operation is not None:
            self._driver.wait(event.operation)

    def instant_ns(self, event: SimulatedEvent) -> int:
        """When the event happened, in the clock's nanoseconds; 0 when empty; raises DeviceMisuse before."""
        operation = event.operation
        if operation is None:
            return event.at_ns
        if not self._driver.has_ended(operation):
            raise DeviceMisuse("the event has not happened yet; synchronize it first")
        return (operation.started_ns if event.is_start else operation.ended_ns) or 0

    def elapsed_ns(self, start: SimulatedEvent, end: SimulatedEvent) -> int:
        """Device time between two events; raises DeviceMisuse unless both have happened."""
        instants = self.instant_ns(start), self.instant_ns(end)
        if 0 in instants:
            raise DeviceMisuse("an event is empty; record both before asking for the time between them")
        return instants[1] - instants[0]

    def buffer(self, nbytes: int, is_pinned: bool = False) -> Buffer:
        """Simulated memory, counted and not allocated; raises OutOfDeviceMemory."""
        return self._account.take(Buffer(nbytes=nbytes, is_pinned=is_pinned))

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back; raises DeviceMisuse when it was given back before."""
        self._account.give_back(buffer)

    def copy_in(self, data: Any, nbytes: int, stream: Stream, span: Span, staging: Buffer | None = None) -> Any:
        """A copy's time on the timeline; without a large enough pinned buffer it blocks the caller."""
        is_staged = staging is not None and staging.is_pinned and staging.nbytes >= nbytes
        device = self.preset.device
        self._copy(nbytes, device.h2d_step(nbytes) if is_staged else device.pageable_h2d_step(nbytes), stream, span)
        if nbytes and not is_staged:
            self._driver.wait(span.ended.operation)
        return data

    def copy_out(self, outputs: Any, stream: Stream, span: Span) -> Any:
        """A copy's time on the timeline; the data stay where they are."""
        nbytes = int(getattr(outputs, "nbytes", 0))
        self._copy(nbytes, self.preset.device.d2h_step(nbytes), stream, span)
        return outputs

    def run(self, call: Callable[[Any], Any], inputs: Any, stream: Stream, span: Span) -> Any:
        """Call a model; what it launches or computes inside goes to the stream and makes the span."""
        worker = self._worker
        worker.stream, worker.first, worker.last = stream, None, None
        self.record(span.started, stream)
        try:
            outputs = call(inputs)
        finally:
            worker.stream = None
        self.record(span.ended, stream)
        if worker.first is not None and worker.last is not None:
            self._mark(span, worker.first, worker.last)
        return outputs

    def release_cache(self) -> None:
        """Nothing to give back: simulated memory is counted and never kept."""

    def memory(self) -> Memory:
        """What is handed out now, and the most that ever was."""
        return self._account.memory()

    def stats(self) -> dict[str, float]:
        """Busy seconds of each engine and views of them, all simulated."""
        busy = {f"simulated_{name}_busy_s": seconds for name, seconds in self._driver.busy_s().items()}
        memory = self._account.memory()
        return {
            **busy,
            "simulated_sm_active_s": busy[f"simulated_{COMPUTE}_busy_s"] * self.preset.device.sm_ratio,
            "simulated_gpu_util_ratio": self._driver.utilisation_ratio(),
            "simulated_allocated_bytes": float(memory.allocated_bytes),
            "simulated_in_flight_requests": float(self.in_flight),
        }

    def open_lane(self, worker: str, intra_op_threads: int = 1) -> Lane:
        """A worker's own way to the device; call it on the worker's thread."""
        return Lane(self, worker, intra_op_threads)

    def close(self) -> None:
        """Give the memory of the weights back."""
        self.free(self._weights)

    def _host_steps(self, part: HostPart) -> list[Step]:
        return self.preset.service.host_steps(part, self.in_flight)

    def _stream_of_run(self) -> Stream:
        if self._worker.stream is None:
            raise DeviceMisuse("device work was launched outside a run call; launch it inside predict")
        return self._worker.stream

    def _submit_in_run(self, stream: Stream, step: Step) -> None:
        submitted = self._driver.submit(stream, [step])
        if submitted is not None:
            self._worker.first = self._worker.first or submitted[0]
            self._worker.last = submitted[1]

    def _copy(self, nbytes: int, step: Step, stream: Stream, span: Span) -> None:
        span.started.clear()
        span.ended.clear()
        submitted = self._driver.submit(stream, [step]) if nbytes else None
        if submitted is not None:
            self._mark(span, *submitted)

    @staticmethod
    def _mark(span: Span, first: Operation, last: Operation) -> None:
        span.started.clear()
        span.ended.clear()
        span.started.operation, span.started.is_start = first, True
        span.ended.operation = last
