"""What must a device offer, so that one lane can serve a model on any of them?

Streams, events, buffers, copies and a run call. `simulated`, `cpu` and `cuda` implement it and pass
one contract suite. Calls are safe from several threads; a stream or an event belongs to one worker.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from perfkit.clock import Clock
from perfkit.errors import PerfkitError

if TYPE_CHECKING:
    from perfkit.serving.devices.lane import Lane

# Only the device that made a stream or an event looks inside it.
Stream: TypeAlias = Any
Event: TypeAlias = Any


class DeviceMisuse(PerfkitError):
    """A call that no device can answer, such as the elapsed time of an event that has not happened."""


class OutOfDeviceMemory(PerfkitError):
    """The device has not got the memory that was asked for; what it holds is unharmed."""


class DeviceLost(PerfkitError):
    """The device answers no more, and no further call in this process will change that; only a new process helps."""

    exit_code = 70


class DeviceInstants(NamedTuple):
    """When one call was copied and computed, in host CLOCK_MONOTONIC nanoseconds; 0 = did not happen.

    The instants are in the ledger's order. `clamped_ns` is by how much they had to be moved for that.
    """

    h2d_started_ns: int
    h2d_ended_ns: int
    compute_started_ns: int
    compute_ended_ns: int
    d2h_started_ns: int
    d2h_ended_ns: int
    clamped_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a device has handed out. `capacity_bytes` is None where there is no limit of its own.

    Reserved is what its allocator keeps, handed out or not (None = it keeps nothing), and inactive split
    the free part of segments that are in use beside it.
    """

    allocated_bytes: int
    peak_bytes: int
    pinned_bytes: int
    capacity_bytes: int | None
    reserved_bytes: int | None = None
    inactive_split_bytes: int | None = None
    retries: int = 0  # allocations that had to give kept memory back first
    ooms: int = 0  # allocations that failed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buffer:
    """Memory of the device, or pinned memory of the host; `storage` is the device's own."""

    nbytes: int
    is_pinned: bool
    storage: Any = None


@dataclass(frozen=True, slots=True)
class Span:
    """The two events around a copy or a computation; a device leaves both empty when there was none."""

    started: Event
    ended: Event


class Device(Protocol):
    """An accelerator, or something that plays one."""

    name: str
    is_simulated: bool
    has_copies: bool  # False: inputs are used where they lie, and a lane skips the copies
    clock: Clock

    def prepare(self, intra_op_threads: int) -> None:
        """Process-wide settings, from the main thread, before any worker starts."""

    def loading(self) -> AbstractContextManager[None]:
        """A block in which a model loads: whatever it starts on the device is done when the block is left."""

    def place(self, tensor: Any) -> Any:
        """A weight where the device computes, ready for every stream; the tensor itself where it lies there already."""

    def enter_worker(self, intra_op_threads: int) -> None:
        """Settings of the calling worker thread; process-wide ones do not hold there."""

    def leave_worker(self) -> None:
        """Undo `enter_worker`, on the same thread."""

    def effective_threads(self) -> int:
        """How many threads one call may use in the calling thread, read back from the library."""

    def stream(self, priority: int = 0) -> Stream:
        """A queue of device work that runs in order; a smaller priority goes first."""

    def release(self, stream: Stream, priority: int = 0) -> None:
        """Give a stream back whose work is done; the priority is the one that it was asked for with."""

    def event(self, is_awaited: bool = False) -> Event:
        """A mark that `record` places; empty until then. `is_awaited`: a thread will block on it."""

    def record(self, event: Event, stream: Stream) -> None:
        """The event happens when everything submitted to the stream so far is done."""

    def wait(self, stream: Stream, event: Event) -> None:
        """Let the stream's next work start after the event; does not block the caller."""

    def synchronize(self, event: Event) -> None:
        """Block the calling thread until the event has happened; an empty event has."""

    def instant_ns(self, event: Event) -> int:
        """When the event happened, in host nanoseconds; 0 when empty; raises DeviceMisuse before it happened."""

    def elapsed_ns(self, start: Event, end: Event) -> int:
        """Device time between two events; raises DeviceMisuse unless both have happened."""

    def buffer(self, nbytes: int, is_pinned: bool = False) -> Buffer:
        """Device memory, or pinned host memory; raises OutOfDeviceMemory."""

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back; raises DeviceMisuse when it was given back before."""

    def copy_in(self, data: Any, nbytes: int, stream: Stream, span: Span, staging: Buffer | None = None) -> Any:
        """Host to device. Through a pinned staging buffer it returns at once, else it blocks the caller."""

    def copy_out(self, outputs: Any, stream: Stream, span: Span) -> Any:
        """Device to host; the result may be read once the span's end has happened."""

    def run(self, call: Callable[[Any], Any], inputs: Any, stream: Stream, span: Span) -> Any:
        """Call a model with the stream as the current one; the span holds its device work."""

    def release_cache(self) -> None:
        """Give back memory that nobody holds but that was kept for later; called after a call ran out of it."""

    def memory(self) -> Memory:
        """What is handed out now, and the most that ever was."""

    def stats(self) -> dict[str, float]:
        """Running totals and views for the statistics page; units are in the names."""

    def open_lane(self, worker: str, intra_op_threads: int = 1, priority: int = 0) -> Lane:
        """A worker's own way to the device, its computing at a priority; call it on the worker's thread."""

    def close(self) -> None:
        """Give everything back; no lane may be open."""
