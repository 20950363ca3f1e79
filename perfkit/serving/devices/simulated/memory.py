"""What do a simulated device's buffers and calls take of its memory, and what did it take to get it?

Bytes are either counted exactly or cut from the segments of a caching allocator, as the preset says. A
call's memory is let go as soon as its device work is over, which is noticed when next somebody looks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock

from perfkit.serving.devices.device import Buffer, DeviceMisuse, Memory, OutOfDeviceMemory
from perfkit.serving.devices.memory import MemoryAccount
from perfkit.serving.devices.simulated.allocator import Block, CachingAllocator
from perfkit.serving.devices.simulated.engine import Operation
from perfkit.serving.devices.simulated.parts import CACHING, MemoryParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a call holds, and how the allocator came by it; with a failure it holds nothing."""

    buffers: tuple[Buffer, ...] = ()
    hits: int = 0
    new_segments: int = 0
    freed_segments: int = 0
    failure: OutOfDeviceMemory | None = None

    def joined(self, later: Holding) -> Holding:
        """What a call holds that took memory twice."""
        return dataclasses.replace(self, buffers=self.buffers + later.buffers)


class SimulatedMemory:
    """The memory of one device. Thread-safe."""

    def __init__(self, capacity_bytes: int, parts: MemoryParts, has_ended: Callable[[Operation], bool]) -> None:
        self._parts = parts
        usable_bytes = int(capacity_bytes * parts.cap_ratio) - parts.context_bytes
        self._account = MemoryAccount(usable_bytes)
        self._allocator = CachingAllocator(usable_bytes) if parts.policy == CACHING else None
        self._has_ended = has_ended
        self._lock = Lock()  # guards _allocator and everything below; the timeline's lock may be taken inside it
        self._in_use: list[tuple[Operation, Holding]] = []
        self._blocks: set[Buffer] = set()
        self._kept_for: set[Hashable] = set()  # streams that have their workspace

    def buffer(self, nbytes: int, is_pinned: bool) -> Buffer:
        """Memory of the device, or pinned memory of the host; raises OutOfDeviceMemory."""
        if is_pinned:
            return self._account.take(Buffer(nbytes=nbytes, is_pinned=True))
        with self._lock:
            self._let_go_of_what_ended()
            return self._take(nbytes, None)[0]

    def free(self, buffer: Buffer) -> None:
        """Give a buffer back; raises DeviceMisuse when it was given back before."""
        with self._lock:
            self._give_back(buffer)

    def hold(self, size: int, pool: Hashable) -> Holding:
        """What a call with `size` requests takes on the streams of a pool: all of it, or nothing and the failure."""
        with self._lock:
            self._let_go_of_what_ended()
            holding = self._take_all(self._wanted(size, pool), pool)
            if holding.failure is None and self._parts.stream_bytes and pool not in self._kept_for:
                self._kept_for.add(pool)
                holding = dataclasses.replace(holding, buffers=holding.buffers[1:])  # the workspace stays for good
            return holding

    def let_go_after(self, operation: Operation, holding: Holding) -> None:
        """Give a call's memory back once its last operation is over."""
        with self._lock:
            self._in_use.append((operation, holding))

    def let_go(self, holding: Holding) -> None:
        """Give a call's memory back now."""
        with self._lock:
            for buffer in holding.buffers:
                self._give_back(buffer)

    def flush(self) -> int:
        """Give the segments that nobody uses back to the driver; how many there were."""
        with self._lock:
            self._let_go_of_what_ended()
            return self._allocator.flush() if self._allocator is not None else 0

    def memory(self) -> Memory:
        """The figures as one record."""
        with self._lock:
            self._let_go_of_what_ended()
            plain = self._account.memory()
            if self._allocator is None:
                return plain
            counts = self._allocator.counts
            return dataclasses.replace(
                plain,
                allocated_bytes=counts.allocated_bytes,
                peak_bytes=counts.peak_bytes,
                reserved_bytes=counts.reserved_bytes,
                inactive_split_bytes=counts.inactive_split_bytes,
                retries=counts.retries,
                ooms=counts.ooms,
            )

    def used_bytes(self) -> int:
        """What the driver sees as taken: all that is reserved, and the context."""
        memory = self.memory()
        kept = memory.allocated_bytes if memory.reserved_bytes is None else memory.reserved_bytes
        return kept + self._parts.context_bytes

    def _wanted(self, size: int, pool: Hashable) -> list[int]:
        parts = self._parts
        workspace = [] if pool in self._kept_for or not parts.stream_bytes else [parts.stream_bytes]
        return [*workspace, *parts.call_blocks(size)]

    def _take_all(self, sizes: Sequence[int], pool: Hashable) -> Holding:
        buffers: list[Buffer] = []
        new_segments = freed_segments = 0
        for nbytes in sizes:
            try:
                buffer, is_new_segment, freed = self._take(nbytes, pool)
            except OutOfDeviceMemory as error:
                for taken in buffers:
                    self._give_back(taken)
                return Holding(freed_segments=freed_segments, failure=error)
            buffers.append(buffer)
            new_segments += is_new_segment
            freed_segments += freed
        hits = len(buffers) - new_segments
        return Holding(buffers=tuple(buffers), hits=hits, new_segments=new_segments, freed_segments=freed_segments)

    def _take(self, nbytes: int, pool: Hashable) -> tuple[Buffer, bool, int]:
        """A buffer, whether it took a new segment, and how many were given back for it."""
        if self._allocator is None or not nbytes:  # nothing takes no block
            return self._account.take(Buffer(nbytes=nbytes, is_pinned=False)), False, 0
        grant = self._allocator.take(nbytes, pool)
        buffer = Buffer(nbytes=nbytes, is_pinned=False, storage=grant.block)
        self._blocks.add(buffer)
        return buffer, grant.is_new_segment, grant.segments_freed

    def _give_back(self, buffer: Buffer) -> None:
        if not isinstance(buffer.storage, Block):
            self._account.give_back(buffer)
            return
        if self._allocator is None or buffer not in self._blocks:
            raise DeviceMisuse(f"a buffer of {buffer.nbytes} bytes is not held by this device; free a buffer once")
        self._blocks.remove(buffer)
        self._allocator.give_back(buffer.storage)

    def _let_go_of_what_ended(self) -> None:
        """Free the memory of the calls that are over, in the order in which they ended."""
        if not self._in_use:
            return
        over: list[tuple[Operation, Holding]] = []
        kept: list[tuple[Operation, Holding]] = []
        for entry in self._in_use:
            (over if self._has_ended(entry[0]) else kept).append(entry)
        self._in_use = kept
        for _, holding in sorted(over, key=lambda entry: entry[0].ended_ns or 0):
            for buffer in holding.buffers:
                self._give_back(buffer)
