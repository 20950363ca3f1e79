"""How does a model run on an NVIDIA GPU, with a stream for each worker and no wait for the whole device?

A worker's copies and kernels go to streams of its own, ordered by events alone; its thread blocks once a
batch, on the last event. Torch's current stream and inference mode belong to one thread, so both are set
inside every worker. One GPU, the first that CUDA_VISIBLE_DEVICES shows. No policy lives here.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from perfkit.clock import NS_PER_S, REAL_CLOCK, Clock
from perfkit.serving.devices.cuda.failures import guarded
from perfkit.serving.devices.cuda.hosttime import HostTime
from perfkit.serving.devices.cuda.presence import CONNECTIONS_VARIABLE, require_gpu
from perfkit.serving.devices.cuda.transfer import Pinned, tensors_in, to_pinned, with_tensors
from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, Span
from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.memory import MemoryAccount
from perfkit.settings.cuda import CudaSettings

_NS_PER_MS = 1_000_000
_cuda: Any = torch.cuda  # whose classes have no types


class CudaEvent:
    """A torch event, and whether it was ever recorded."""

    __slots__ = ("is_recorded", "raw")

    def __init__(self, is_blocking: bool) -> None:
        self.raw = _cuda.Event(enable_timing=True, blocking=is_blocking)
        self.is_recorded = False


class _Worker(threading.local):
    """The calling thread's torch state."""

    mode: Any = None  # inference mode, entered; left on the same thread


class CudaDevice:
    """One GPU behind the device protocol. Safe from several threads."""

    name = "cuda"
    is_simulated = False
    has_copies = True

    def __init__(self, settings: CudaSettings | None = None, clock: Clock = REAL_CLOCK) -> None:
        settings = settings or CudaSettings()
        require_gpu(settings)
        self.clock = clock
        self._where = torch.device("cuda", 0)
        properties = _cuda.get_device_properties(self._where)
        capacity_bytes = properties.total_memory
        self.uuid = str(properties.uuid)  # by which the driver's own library knows it; its number there is another
        if settings.memory_cap_ratio is not None:
            _cuda.set_per_process_memory_fraction(settings.memory_cap_ratio, self._where)
            capacity_bytes = round(settings.memory_cap_ratio * capacity_bytes)
        self._is_blocking = settings.wait == "blocking"
        self._account = MemoryAccount(capacity_bytes)
        self._host_time = HostTime(clock)
        self._loads = _cuda.Stream()
        self._worker = _Worker()
        self._idle: dict[int, list[Any]] = {}  # streams that were given back, by priority; appended and popped, no lock

    def prepare(self, intra_op_threads: int) -> None:
        """Limit torch's threads in the process, and see done what was started on the default stream, by whomever."""
        torch.set_num_threads(intra_op_threads)
        _cuda.current_stream(self._where).synchronize()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Let a model load on one stream, be it by `place` or by itself, and wait for what it has started there."""
        with _cuda.stream(self._loads):
            yield
        self._loads.synchronize()

    def place(self, tensor: Any) -> Any:
        """A weight on the GPU, ready for every stream; blocks until it is there."""
        return guarded(self._loads, lambda: self._place(tensor))

    def enter_worker(self, intra_op_threads: int) -> None:
        """Limit torch's threads and enter inference mode in the calling thread."""
        torch.set_num_threads(intra_op_threads)
        if self._worker.mode is None:
            self._worker.mode = torch.inference_mode()
            self._worker.mode.__enter__()

    def leave_worker(self) -> None:
        """Leave inference mode, on the same thread."""
        if self._worker.mode is not None:
            self._worker.mode.__exit__(None, None, None)
            self._worker.mode = None

    def effective_threads(self) -> int:
        """Torch's limit in the calling thread, read back."""
        return torch.get_num_threads()

    def stream(self, priority: int = 0) -> Any:
        """A stream that was given back, or a new one: torch has 32 of a priority, and the 33rd is the first again."""
        idle = self._idle.setdefault(priority, [])
        try:
            return idle.pop()
        except IndexError:
            return _cuda.Stream(self._where, priority=priority)

    def release(self, stream: Any, priority: int = 0) -> None:
        """Keep the stream, whose pool of memory is warm, for the next worker."""
        self._idle[priority].append(stream)

    def event(self, is_awaited: bool = False) -> CudaEvent:
        """An empty event. A thread that waits for one sleeps only if it is awaited; for others it would spin."""
        return CudaEvent(is_awaited and self._is_blocking)

    def record(self, event: CudaEvent, stream: Any) -> None:
        """The event happens when everything submitted to the stream so far is done."""
        event.raw.record(stream)
        event.is_recorded = True

    def wait(self, stream: Any, event: CudaEvent) -> None:
        """Let the stream's next work start after the event; does not block the caller."""
        if event.is_recorded:
            stream.wait_event(event.raw)

    def synchronize(self, event: CudaEvent) -> None:
        """Block the calling thread until the event has happened; raises DeviceLost."""
        if event.is_recorded:
            guarded(self._loads, event.raw.synchronize)

    def instant_ns(self, event: CudaEvent) -> int:
        """When the event happened, in host nanoseconds; 0 when empty; raises DeviceMisuse before."""
        if not event.is_recorded:
            return 0
        if not event.raw.query():
            raise DeviceMisuse("the event has not happened yet; synchronize it first")
        return self._host_time.instant_ns(event.raw)

    def elapsed_ns(self, start: CudaEvent, end: CudaEvent) -> int:
        """Device time between two events; raises DeviceMisuse unless both have happened."""
        if not (start.is_recorded and end.is_recorded):
            raise DeviceMisuse("an event is empty; record both before asking for the time between them")
        if not (start.raw.query() and end.raw.query()):
            raise DeviceMisuse("the event has not happened yet; synchronize it first")
        elapsed_ms: float = start.raw.elapsed_time(end.raw)
        return round(elapsed_ms * _NS_PER_MS)

    def buffer(self, nbytes: int, is_pinned: bool = False) -> Buffer:
        """Memory of the GPU, or pinned memory of the host; raises OutOfDeviceMemory."""
        storage = guarded(self._loads, lambda: Pinned(nbytes) if is_pinned else self._allocate(nbytes))
        return self._account.take(Buffer(nbytes=nbytes, is_pinned=is_pinned, storage=storage))

    def free(self, buffer: Buffer) -> None:
        """Count a buffer no longer; its memory goes back to torch with the last reference."""
        self._account.give_back(buffer)

    def copy_in(self, data: Any, nbytes: int, stream: Any, span: Span, staging: Buffer | None = None) -> Any:
        """The data with its tensors on the GPU. Through a large enough pinned buffer it returns at once."""
        tensors = tensors_in(data) if nbytes else []
        span.started.is_recorded = span.ended.is_recorded = False
        if not tensors:
            return data
        needed = sum(tensor.nbytes for tensor in tensors)
        if staging is None or not staging.is_pinned or staging.nbytes < needed:
            copied = self._in_span(stream, span, lambda: with_tensors(data, lambda tensor: tensor.to(self._where)))
            self.synchronize(span.ended)
            return copied
        pinned: Pinned = staging.storage
        copied = self._in_span(stream, span, lambda: pinned.send(data, self._where))
        pinned.read = span.ended.raw
        return copied

    def copy_out(self, outputs: Any, stream: Any, span: Span) -> Any:
        """The outputs with their tensors in pinned memory, to be read once the span's end has happened."""
        span.started.is_recorded = span.ended.is_recorded = False
        if not any(tensor.is_cuda for tensor in tensors_in(outputs)):
            return outputs
        return self._in_span(stream, span, lambda: with_tensors(outputs, to_pinned))

    def run(self, call: Callable[[Any], Any], inputs: Any, stream: Any, span: Span) -> Any:
        """Call a model with the stream as the current one; raises OutOfDeviceMemory, DeviceLost, or what it raises."""
        return self._in_span(stream, span, lambda: call(inputs))

    def release_cache(self) -> None:
        """Give cached blocks back to CUDA; it waits for the device, so only for a worker that ran out of memory."""
        _cuda.empty_cache()

    def memory(self) -> Memory:
        """What the buffers take, and what torch's allocator keeps and went through for the model."""
        torchs = _cuda.memory_stats(self._where)
        return dataclasses.replace(
            self._account.memory(),
            reserved_bytes=torchs.get("reserved_bytes.all.current", 0),
            inactive_split_bytes=torchs.get("inactive_split_bytes.all.current", 0),
            retries=torchs.get("num_alloc_retries", 0),
            ooms=torchs.get("num_ooms", 0),
        )

    def stats(self) -> dict[str, float]:
        """What torch's allocator says, the error of instants, and the hardware queues (0 = CUDA's own choice)."""
        memory = self.memory()
        allocated_bytes = _cuda.memory_stats(self._where).get("allocated_bytes.all.current", 0)
        return {
            "device_allocated_bytes": float(allocated_bytes),
            "device_reserved_bytes": float(memory.reserved_bytes or 0),
            "device_inactive_split_bytes": float(memory.inactive_split_bytes or 0),
            "device_alloc_retry_count": float(memory.retries),
            "device_oom_count": float(memory.ooms),
            "device_clock_error_s": self._host_time.error_ns() / NS_PER_S,
            "device_connections_count": float(os.environ.get(CONNECTIONS_VARIABLE, 0)),
        }

    def open_lane(self, worker: str, intra_op_threads: int = 1, priority: int = 0) -> Lane:
        """A worker's own way to the device; call it on the worker's thread."""
        return Lane(self, worker, intra_op_threads, priority)

    def close(self) -> None:
        """Nothing to give back: the process's end gives CUDA everything."""

    def _in_span(self, stream: Any, span: Span, work: Callable[[], Any]) -> Any:
        """Do work with the stream as the calling thread's current one, between the span's two events."""

        def between_events() -> Any:
            self._host_time.renew_if_old()
            with _cuda.stream(stream):
                self.record(span.started, stream)
                done = work()
                self.record(span.ended, stream)
            return done

        return guarded(stream, between_events)

    def _place(self, tensor: Any) -> Any:
        with self.loading():
            return tensor.to(self._where)

    def _allocate(self, nbytes: int) -> Any:
        with self.loading():
            return torch.empty(nbytes, dtype=torch.uint8, device=self._where)
