"""How much memory has a device handed out, and is there any left?"""

from __future__ import annotations

from threading import Lock

from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, OutOfDeviceMemory


class MemoryAccount:
    """Counts a device's buffers against its capacity (None = no limit). Thread-safe."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self._lock = Lock()  # guards everything below
        self._capacity_bytes = capacity_bytes
        self._open: set[Buffer] = set()
        self._allocated_bytes = 0
        self._pinned_bytes = 0
        self._peak_bytes = 0
        self._ooms = 0

    def take(self, buffer: Buffer) -> Buffer:
        """Count a new buffer; raises OutOfDeviceMemory and counts nothing when it does not fit."""
        with self._lock:
            if not buffer.is_pinned:
                self._take_device_bytes(buffer.nbytes)
            else:
                self._pinned_bytes += buffer.nbytes
            self._open.add(buffer)
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        """Count a buffer no longer; raises DeviceMisuse when it is not counted."""
        with self._lock:
            if buffer not in self._open:
                raise DeviceMisuse(f"a buffer of {buffer.nbytes} bytes is not held by this device; free a buffer once")
            self._open.remove(buffer)
            if buffer.is_pinned:
                self._pinned_bytes -= buffer.nbytes
            else:
                self._allocated_bytes -= buffer.nbytes

    def memory(self) -> Memory:
        """The figures as one record."""
        with self._lock:
            return Memory(
                allocated_bytes=self._allocated_bytes,
                peak_bytes=self._peak_bytes,
                pinned_bytes=self._pinned_bytes,
                capacity_bytes=self._capacity_bytes,
                ooms=self._ooms,
            )

    def _take_device_bytes(self, nbytes: int) -> None:
        wanted = self._allocated_bytes + nbytes
        if self._capacity_bytes is not None and wanted > self._capacity_bytes:
            free = self._capacity_bytes - self._allocated_bytes
            self._ooms += 1
            raise OutOfDeviceMemory(
                f"{nbytes} bytes asked for, {free} of {self._capacity_bytes} are free; use fewer workers"
            )
        self._allocated_bytes = wanted
        self._peak_bytes = max(self._peak_bytes, wanted)
