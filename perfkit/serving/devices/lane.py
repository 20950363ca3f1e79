"""How does a worker get one batch through a device, and when did each part of it happen?

The same few lines serve every backend and decide nothing: copy in, run, copy out, wait for the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from perfkit.serving.devices.device import Buffer, Device, DeviceInstants, Span

# Priorities order kernels, not copies. But torch has 32 streams of each priority: copies get a set of their own.
COPY_PRIORITY = -3


class Batch(Protocol):
    """What a lane needs of a collated batch."""

    @property
    def inputs(self) -> Any:
        """What the model takes."""

    @property
    def size(self) -> int:
        """Requests in it."""

    @property
    def nbytes(self) -> int:
        """Bytes to copy to the device; 0 = nothing."""


class Lane:
    """One worker's streams and events. Not thread-safe: open, use and close it on the worker's own thread."""

    def __init__(self, device: Device, worker: str, intra_op_threads: int, priority: int) -> None:
        self.worker = worker
        device.enter_worker(intra_op_threads)
        self._device = device
        self._now_ns = device.clock.now_ns
        self._priority = priority
        self._compute_stream = device.stream(priority)
        self.copy_stream = device.stream(COPY_PRIORITY)
        self._h2d = Span(device.event(), device.event())
        self._compute = Span(device.event(), device.event(is_awaited=True))
        self._d2h = Span(device.event(), device.event(is_awaited=True))
        self._staging: Buffer | None = None

    def run(self, predict: Callable[[Any], Any], batch: Batch) -> tuple[Any, DeviceInstants]:
        """The model's outputs for one batch, once the device is done; blocks the worker until then."""
        entered_ns = self._now_ns()
        device = self._device
        if not device.has_copies:
            outputs = device.run(predict, batch.inputs, self._compute_stream, self._compute)
            device.synchronize(self._compute.ended)
            return outputs, self._computed_in_place(entered_ns)
        inputs = self._copy_in(batch)
        computed = device.run(predict, inputs, self._compute_stream, self._compute)
        outputs = device.copy_out(computed, self._compute_stream, self._d2h)
        device.synchronize(self._d2h.ended)  # the last one first: the thread blocks once
        device.synchronize(self._compute.ended)  # where nothing was copied out, this is the last
        return outputs, self._copied_and_computed(entered_ns)

    def release_cache(self) -> None:
        """Let the device give memory back that nobody holds, and the lane's own staging buffer with it."""
        self._free_staging()
        self._device.release_cache()

    def effective_threads(self) -> int:
        """How many threads one call may use here, read back from the library."""
        return self._device.effective_threads()

    def close(self) -> None:
        """Give the worker's memory, streams and thread settings back."""
        self._free_staging()
        self._device.release(self._compute_stream, self._priority)
        self._device.release(self.copy_stream, COPY_PRIORITY)
        self._device.leave_worker()

    def _free_staging(self) -> None:
        if self._staging is not None:
            self._device.free(self._staging)
            self._staging = None

    def _copy_in(self, batch: Batch) -> Any:
        device, nbytes = self._device, batch.nbytes
        if nbytes and (self._staging is None or self._staging.nbytes < nbytes):
            self._free_staging()
            self._staging = device.buffer(nbytes, is_pinned=True)
        inputs = device.copy_in(batch.inputs, nbytes, self.copy_stream, self._h2d, self._staging)
        device.wait(self._compute_stream, self._h2d.ended)
        return inputs

    def _computed_in_place(self, entered_ns: int) -> DeviceInstants:
        device, compute = self._device, self._compute
        started_ns, ended_ns = device.instant_ns(compute.started), device.instant_ns(compute.ended)
        clamped_ns, left_ns = 0, self._now_ns()
        if not entered_ns <= started_ns <= ended_ns <= left_ns:
            (started_ns, ended_ns), clamped_ns = in_ledger_order((started_ns, ended_ns), entered_ns, left_ns)
        return DeviceInstants(0, 0, started_ns, ended_ns, 0, 0, clamped_ns)

    def _copied_and_computed(self, entered_ns: int) -> DeviceInstants:
        spans = (self._h2d, self._compute, self._d2h)
        measured = tuple(self._device.instant_ns(event) for span in spans for event in (span.started, span.ended))
        ordered, clamped_ns = in_ledger_order(measured, entered_ns, self._now_ns())
        h2d_started_ns, h2d_ended_ns, compute_started_ns, compute_ended_ns, d2h_started_ns, d2h_ended_ns = ordered
        return DeviceInstants(
            h2d_started_ns=h2d_started_ns,
            h2d_ended_ns=h2d_ended_ns,
            compute_started_ns=compute_started_ns,
            compute_ended_ns=compute_ended_ns,
            d2h_started_ns=d2h_started_ns,
            d2h_ended_ns=d2h_ended_ns,
            clamped_ns=clamped_ns,
        )


def in_ledger_order(measured: tuple[int, ...], floor_ns: int, ceiling_ns: int) -> tuple[list[int], int]:
    """Instants moved into their order between two host instants, and by how much in sum; 0 stays absent.

    A device's clock is mapped to the host's with an error, so an instant may lie before the call was
    made, after its end was seen, or before its predecessor.
    """
    ordered, moved_ns = [], 0
    for instant_ns in measured:
        if instant_ns == 0:
            ordered.append(0)
            continue
        floor_ns = max(floor_ns, min(instant_ns, ceiling_ns))
        moved_ns += abs(instant_ns - floor_ns)
        ordered.append(floor_ns)
    return ordered, moved_ns
