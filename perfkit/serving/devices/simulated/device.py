"""What does the simulated accelerator look like to a lane and to a simulated model?

To a lane it is a device like any other. A simulated model also tells it what its stages cost
(`work`, `launch`) and which requests are in the service (`enter`). Every figure is simulated.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock
from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, Span
from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.simulated.dispatch import Dispatch
from perfkit.serving.devices.simulated.driver import Driver
from perfkit.serving.devices.simulated.engine import Operation, Stream
from perfkit.serving.devices.simulated.memory import Holding, SimulatedMemory
from perfkit.serving.devices.simulated.parts import CACHING
from perfkit.serving.devices.simulated.presence import Presence, Visit
from perfkit.serving.devices.simulated.preset import COMPUTE, DEFAULT_PRESET, HOST, PINNED, HostPart, Preset, Step
from perfkit.serving.devices.simulated.view import BoardReading, meters, read_board

POOLS_PER_PRIORITY = 32  # torch hands its streams out in turn: the 33rd has the memory pool of the first


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
    holding: Holding | None = None


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
        self._dispatch = Dispatch(preset.device.launches, self._driver, clock)
        self._takes_memory = bool(preset.device.memory.call_blocks(1) or preset.device.memory.stream_bytes)
        self._empties_memory = preset.device.memory.empties
        self._memory = SimulatedMemory(preset.device.memory_bytes, preset.device.memory, self._driver.has_ended)
        self._pools = itertools.count()
        self._has_pinned_copies = preset.device.copies == PINNED
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
        """Queue a call's host work, then its device work, on the stream of the run call.

        Blocks the caller for as long as getting the call's memory takes, and while launching holds Python's
        lock; neither is modelled unless the preset says so. Raises OutOfDeviceMemory.
        """
        stream = self._stream_of_run()
        if self._takes_memory:
            self._take_memory(size, stream)
        self._note_in_run(self._dispatch.launch(stream, self._host_steps(part), self.preset.compute_step(size)))

    def compute(self, seconds: float, sm_ratio: float | None = None) -> None:
        """Device work of an exact length on the stream of the run call; blocks nobody.

        `sm_ratio` is the share of the multiprocessors that it keeps active; None = the preset's.
        """
        share = self.preset.device.sm_ratio if sm_ratio is None else sm_ratio
        stream = self._stream_of_run()
        self._note_in_run(self._driver.submit(stream, [Step(COMPUTE, seconds * NS_PER_S, 0.0, share)]))

    def prepare(self, intra_op_threads: int) -> None:
        """Nothing to set: simulated work uses no threads of its own."""

    def loading(self) -> AbstractContextManager[None]:
        """Nothing is left running."""
        return nullcontext()

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
        return Stream(priority, pool=(priority, next(self._pools) % POOLS_PER_PRIORITY))

    def release(self, stream: Stream, priority: int = 0) -> None:
        """Nothing to keep."""

    def event(self, is_awaited: bool = False) -> SimulatedEvent:
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
        return self._memory.buffer(nbytes, is_pinned)

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back; raises DeviceMisuse when it was given back before."""
        self._memory.free(buffer)

    def copy_in(self, data: Any, nbytes: int, stream: Stream, span: Span, staging: Buffer | None = None) -> Any:
        """A copy's time on the timeline.

        Without a large enough pinned buffer, or with a preset of pageable copies, it blocks the caller until
        the stream's earlier work and the copy are over, so that the caller overlaps nothing with it.
        """
        is_staged = staging is not None and staging.is_pinned and staging.nbytes >= nbytes and self._has_pinned_copies
        self._copy(nbytes, self.preset.device.h2d_step(nbytes, is_staged), stream, span)
        if nbytes and not is_staged:
            self._driver.wait(span.ended.operation)
        return data

    def copy_out(self, outputs: Any, stream: Stream, span: Span) -> Any:
        """A copy's time on the timeline; the data stay where they are. Into pageable memory it blocks the caller."""
        nbytes = int(getattr(outputs, "nbytes", 0))
        self._copy(nbytes, self.preset.device.d2h_step(nbytes, self._has_pinned_copies), stream, span)
        if nbytes and not self._has_pinned_copies:
            self._driver.wait(span.ended.operation)
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
            if worker.holding is not None:
                self._hand_memory_over(worker)
        if self._empties_memory:
            self._driver.come_to_rest(Step(HOST, 0.0, 0.0))  # the call's own memory is kept until it is over
            self.release_cache()
        self.record(span.ended, stream)
        if worker.first is not None and worker.last is not None:
            self._mark(span, worker.first, worker.last)
        return outputs

    def release_cache(self) -> None:
        """Give the segments that nobody uses back, once the device has come to rest; nothing where none are kept."""
        if self.preset.device.memory.policy == CACHING:
            self._pay_for_freed(self._memory.flush())

    def memory(self) -> Memory:
        """What is handed out now, and the most that ever was."""
        return self._memory.memory()

    def read_board(self) -> BoardReading:
        """What the board's meters show now, as a driver's library would tell it; all of it simulated."""
        parts = self.preset.device
        return read_board(parts.board, self._driver.activity(), self._memory.used_bytes(), parts.memory_bytes)

    def stats(self) -> dict[str, float]:
        """Busy seconds of each engine, views of them, and the board's meters that are modelled, all simulated."""
        busy = {f"simulated_{name}_busy_s": seconds for name, seconds in self._driver.busy_s().items()}
        memory = self.memory()
        activity = self._driver.activity()
        return {
            **busy,
            "simulated_sm_active_s": activity.sm_active_s,
            "simulated_gpu_util_ratio": activity.utilisation_ratio,
            "simulated_allocated_bytes": float(memory.allocated_bytes),
            "simulated_in_flight_requests": float(self.in_flight),
            **{f"simulated_{name}": value for name, value in meters(self.read_board()).items()},
        }

    def open_lane(self, worker: str, intra_op_threads: int = 1, priority: int = 0) -> Lane:
        """A worker's own way to the device; call it on the worker's thread."""
        return Lane(self, worker, intra_op_threads, priority)

    def close(self) -> None:
        """Give the memory of the weights back."""
        self.free(self._weights)

    def _host_steps(self, part: HostPart) -> list[Step]:
        return self.preset.service.host_steps(part, self.in_flight)

    def _stream_of_run(self) -> Stream:
        if self._worker.stream is None:
            raise DeviceMisuse("device work was launched outside a run call; launch it inside predict")
        return self._worker.stream

    def _note_in_run(self, submitted: tuple[Operation, Operation] | None) -> None:
        if submitted is not None:
            self._worker.first = self._worker.first or submitted[0]
            self._worker.last = submitted[1]

    def _take_memory(self, size: int, stream: Stream) -> None:
        """Hold what a call takes and pay for it; raises OutOfDeviceMemory."""
        holding, parts = self._memory.hold(size, stream.pool), self.preset.device.memory
        self._pay_for_freed(holding.freed_segments)
        seconds = holding.hits * parts.hit_s + holding.new_segments * parts.miss_s
        if seconds:
            paid = self._driver.submit(Stream(), [Step(HOST, seconds * NS_PER_S, 0.0)])
            if paid is not None:
                self._driver.wait(paid[1])
        if holding.failure is not None:
            raise holding.failure
        earlier = self._worker.holding
        self._worker.holding = holding if earlier is None else earlier.joined(holding)

    def _pay_for_freed(self, segments: int) -> None:
        """Giving segments back waits for all the device's work, and takes its time for each."""
        if segments:
            seconds = segments * self.preset.device.memory.segment_free_s
            self._driver.come_to_rest(Step(HOST, seconds * NS_PER_S, 0.0))

    def _hand_memory_over(self, worker: _Worker) -> None:
        """A call's memory goes with its last operation, or at once when it came to none."""
        holding, worker.holding = worker.holding, None
        if holding is not None and worker.last is not None:
            self._memory.let_go_after(worker.last, holding)
        elif holding is not None:
            self._memory.let_go(holding)

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
