"""How does a copy of a model's weights come from the host's memory into a slot on the device?

On a device with copies it goes over the bus from pinned memory, on a stream for that alone. On the host's own
processors it is copied from one place in memory to another, byte for byte. Either way the caller is blocked.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Buffer, Device, Span
from perfkit.serving.devices.lane import COPY_PRIORITY


class Size(NamedTuple):
    """How many copies there are, and how many of them the device has room for."""

    copies: int
    slots: int


class WeightStore:
    """Copies in host memory and slots on the device, all of one size. Who fills a slot has it to himself."""

    def __init__(self, device: Device, arrays: Sequence[Any], size: Size) -> None:
        """Raises ConfigError for a model without weights, OutOfDeviceMemory when the slots do not fit the device.

        The device has one copy already, which the model's loading brought: that is the first slot.
        """
        self.nbytes = sum(int(array.nbytes) for array in arrays)
        if not self.nbytes:
            raise ConfigError("the model's weights take 0 bytes; a model without weights has nothing to switch")
        self.device = device
        # One stream for all loads: a GPU's allocator keeps freed memory for the stream that it was taken on.
        self._bus = threading.Lock()  # guards _stream and _span
        self._stream = device.stream(COPY_PRIORITY)
        self._span = Span(device.event(), device.event(is_awaited=True))
        self._buffers: list[Buffer] = []
        with device.loading():
            first = [_on_host(array) for array in arrays]
        self._sources: list[Sequence[Any]] = [first, *(copy.deepcopy(first) for _ in range(size.copies - 1))]
        self._slots: list[Any] = [None] * size.slots
        self._pinned: list[Buffer] = []
        if device.has_copies:
            self._pinned = [self._take(is_pinned=True) for _ in range(size.copies)]
        else:
            self._slots = [copy.deepcopy(arrays) for _ in range(size.slots)]
        if device.is_simulated:  # whose memory is counted here, because its copies allocate nothing
            for _ in range(size.slots - 1):
                self._take(is_pinned=False)
        elif device.has_copies:
            for slot in range(1, size.slots):
                self.fill(slot, slot)

    def fill(self, slot: int, of: int) -> None:
        """Copy the weights of one of the copies into a slot; blocks until they are there. One load at a time."""
        source, device = self._sources[of], self.device
        with self._bus:
            if not device.has_copies:
                device.run(functools.partial(_overwrite, self._slots[slot]), source, self._stream, self._span)
                return
            self._slots[slot] = None  # what was there gives its memory back before the next one needs it
            self._slots[slot] = device.copy_in(source, self.nbytes, self._stream, self._span, self._pinned[of])
            device.synchronize(self._span.ended)

    def close(self) -> None:
        """Give all memory back; no slot may be being filled."""
        for buffer in self._buffers:
            self.device.free(buffer)
        self._buffers, self._slots, self._sources = [], [], []

    def _take(self, *, is_pinned: bool) -> Buffer:
        try:
            buffer = self.device.buffer(self.nbytes, is_pinned=is_pinned)
        except BaseException:
            self.close()
            raise
        self._buffers.append(buffer)
        return buffer


def _on_host(array: Any) -> Any:
    return array.cpu() if getattr(array, "is_cuda", False) else array


def _overwrite(targets: Sequence[Any], sources: Sequence[Any]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target[...] = source
