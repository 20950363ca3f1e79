"""How does a model run on the host's own processors, with the thread limits really in force?

Nothing is copied: the model computes where its inputs lie, inside the call. Torch is touched only
when the model has imported it. Its thread limit does not reach a thread that exists or starts
later, and inference mode belongs to one thread, so both are set again inside every worker.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from perfkit.clock import REAL_CLOCK, Clock
from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, OutOfDeviceMemory, Span
from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.memory import MemoryAccount


class _Worker(threading.local):
    """The calling thread's torch state."""

    intra_op_threads = 1
    inference_mode: Any = None  # entered context, left on the same thread


class CpuStream:
    """Work on a processor is done when its call returns, so a stream only knows whether torch is set up."""

    __slots__ = ("is_set_up",)

    def __init__(self) -> None:
        self.is_set_up = False


class CpuEvent:
    """A host instant; 0 = empty."""

    __slots__ = ("at_ns",)

    def __init__(self) -> None:
        self.at_ns = 0


class CpuDevice:
    """The host's processors behind the device protocol. Safe from several threads."""

    name = "cpu"
    is_simulated = False
    has_copies = False

    def __init__(self, clock: Clock = REAL_CLOCK) -> None:
        self.clock = clock
        self._now_ns = clock.now_ns
        self._account = MemoryAccount()
        self._worker = _Worker()

    def prepare(self, intra_op_threads: int) -> None:
        """Limit torch's threads in the process, if it is imported."""
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(intra_op_threads)

    def loading(self) -> AbstractContextManager[None]:
        """Nothing is left running."""
        return nullcontext()

    def place(self, tensor: Any) -> Any:
        """The tensor itself: the host's memory is the device's."""
        return tensor

    def enter_worker(self, intra_op_threads: int) -> None:
        """Limit torch's threads and enter inference mode in the calling thread."""
        self._worker.intra_op_threads = intra_op_threads
        self._set_torch_up()

    def leave_worker(self) -> None:
        """Leave inference mode, on the same thread."""
        if self._worker.inference_mode is not None:
            self._worker.inference_mode.__exit__(None, None, None)
            self._worker.inference_mode = None

    def effective_threads(self) -> int:
        """Torch's limit in the calling thread, read back; 1 without torch."""
        torch = sys.modules.get("torch")
        return 1 if torch is None else int(torch.get_num_threads())

    def stream(self, priority: int = 0) -> CpuStream:
        """A stream of one worker; priorities mean nothing here."""
        return CpuStream()

    def release(self, stream: CpuStream, priority: int = 0) -> None:
        """Nothing to keep."""

    def event(self, is_awaited: bool = False) -> CpuEvent:
        """An empty event."""
        return CpuEvent()

    def record(self, event: CpuEvent, stream: CpuStream) -> None:
        """The event happens now: all work before it is done."""
        event.at_ns = self._now_ns()

    def wait(self, stream: CpuStream, event: CpuEvent) -> None:
        """Nothing to do: whatever was recorded has happened."""

    def synchronize(self, event: CpuEvent) -> None:
        """Nothing to do: whatever was recorded has happened."""

    def instant_ns(self, event: CpuEvent) -> int:
        """When the event was recorded, in host nanoseconds; 0 when empty."""
        return event.at_ns

    def elapsed_ns(self, start: CpuEvent, end: CpuEvent) -> int:
        """Time between two recorded events; raises DeviceMisuse when one is empty."""
        if not start.at_ns or not end.at_ns:
            raise DeviceMisuse("an event is empty; record both before asking for the time between them")
        return end.at_ns - start.at_ns

    def buffer(self, nbytes: int, is_pinned: bool = False) -> Buffer:
        """Host memory; raises OutOfDeviceMemory."""
        return self._account.take(Buffer(nbytes=nbytes, is_pinned=is_pinned, storage=bytearray(nbytes)))

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back; raises DeviceMisuse when it was given back before."""
        self._account.give_back(buffer)

    def copy_in(self, data: Any, nbytes: int, stream: CpuStream, span: Span, staging: Buffer | None = None) -> Any:
        """The data as it is; the span stays empty."""
        span.started.at_ns = span.ended.at_ns = 0
        return data

    def copy_out(self, outputs: Any, stream: CpuStream, span: Span) -> Any:
        """The outputs as they are; the span stays empty."""
        span.started.at_ns = span.ended.at_ns = 0
        return outputs

    def run(self, call: Callable[[Any], Any], inputs: Any, stream: CpuStream, span: Span) -> Any:
        """Call the model in the calling thread; the span is the time of the call."""
        if not stream.is_set_up:
            stream.is_set_up = self._set_torch_up()
        span.started.at_ns = self._now_ns()
        try:
            outputs = call(inputs)
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            raise OutOfDeviceMemory(f"the host has not got the memory for this call: {error}") from None
        span.ended.at_ns = self._now_ns()
        return outputs

    def release_cache(self) -> None:
        """Nothing to give back: what nobody holds is the allocator's."""

    def memory(self) -> Memory:
        """What the buffers take; the model's own memory is the process's."""
        return self._account.memory()

    def stats(self) -> dict[str, float]:
        """Bytes held by buffers."""
        return {"device_allocated_bytes": float(self._account.memory().allocated_bytes)}

    def open_lane(self, worker: str, intra_op_threads: int = 1, priority: int = 0) -> Lane:
        """A worker's own way to the device; call it on the worker's thread."""
        return Lane(self, worker, intra_op_threads, priority)

    def close(self) -> None:
        """Nothing to give back: buffers are the host's memory."""

    def _set_torch_up(self) -> bool:
        """Limit torch in the calling thread; False as long as nobody has imported it.

        A model may import it as late as in its first call, so a stream asks until it is there.
        """
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "inference_mode"):
            return False
        if self._worker.inference_mode is None:
            torch.set_num_threads(self._worker.intra_op_threads)
            self._worker.inference_mode = torch.inference_mode()
            self._worker.inference_mode.__enter__()
        return True


def _is_out_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Python has a kind of error for it; torch's allocator for the host has only a name of its own in the text."""
    return isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
