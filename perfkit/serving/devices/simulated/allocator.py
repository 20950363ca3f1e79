"""Which segment does a block of device memory come from, and when is there none?

A pure model of torch's caching allocator: sizes are rounded, blocks are cut from segments that the
driver gave, and what is freed stays in the pool of its stream. Only when the driver has nothing left
are the segments that lie wholly free given back, of all streams at once. So memory can be reserved,
free, and of no use to anybody: in another stream's pool, or beside a block that is still held.
Sizes and limits are those of torch 2.13 (`c10/core/AllocatorConfig.h`).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Hashable
from dataclasses import dataclass

from perfkit.serving.devices.device import OutOfDeviceMemory

MIB = 1 << 20
ROUNDING_BYTES = 512
SMALL_BYTES = MIB  # a block up to here comes from a small segment
SMALL_SEGMENT_BYTES = 2 * MIB
MIDDLE_BYTES = 10 * MIB  # a block below here comes from a segment of 20 MiB, others from one of their own size
MIDDLE_SEGMENT_BYTES = 20 * MIB
LARGE_ROUNDING_BYTES = 2 * MIB

_Pool = tuple[Hashable, bool]  # the stream, and whether the blocks are small


class Block:
    """A piece of a segment. Its neighbours in the segment are `before` and `after`."""

    __slots__ = ("after", "before", "is_held", "nbytes", "number", "pool")

    def __init__(self, pool: _Pool, nbytes: int, number: int) -> None:
        self.pool = pool
        self.nbytes = nbytes
        self.number = number
        self.is_held = False
        self.before: Block | None = None
        self.after: Block | None = None

    @property
    def is_split(self) -> bool:
        """Whether the segment holds other blocks too."""
        return self.before is not None or self.after is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A block that was handed out, and what that took: a new segment, and segments given back before."""

    block: Block
    is_new_segment: bool
    segments_freed: int


@dataclass(slots=True, kw_only=True)
class AllocatorCounts:
    """Running figures of an allocator; its owner copies them."""

    allocated_bytes: int = 0
    reserved_bytes: int = 0
    peak_bytes: int = 0
    inactive_split_bytes: int = 0
    segments: int = 0
    retries: int = 0  # allocations that had to give segments back first
    ooms: int = 0  # allocations that failed all the same


class CachingAllocator:
    """Pools of blocks, one pair a stream. Not thread-safe: its owner guards it with one lock."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.counts = AllocatorCounts()
        self._free: dict[_Pool, list[tuple[int, int, Block]]] = {}  # ascending by size, then by age
        self._numbers = itertools.count()

    def take(self, nbytes: int, stream: Hashable) -> Grant:
        """A block of at least so many bytes; raises OutOfDeviceMemory, holding nothing more than before."""
        wanted = _rounded(nbytes, ROUNDING_BYTES)
        pool = (stream, wanted <= SMALL_BYTES)
        found = self._best_fit(pool, wanted)
        if found is not None:
            return Grant(block=self._hand_out(found, wanted), is_new_segment=False, segments_freed=0)
        segment_bytes, freed = segment_for(wanted), 0
        if not self._fits(segment_bytes):
            self.counts.retries += 1
            freed = self.flush()
            if not self._fits(segment_bytes):
                raise self._out_of_memory(nbytes, segment_bytes)
        self.counts.reserved_bytes += segment_bytes
        self.counts.segments += 1
        block = Block(pool, segment_bytes, next(self._numbers))
        return Grant(block=self._hand_out(block, wanted), is_new_segment=True, segments_freed=freed)

    def give_back(self, block: Block) -> None:
        """Put a block back into the pool of its stream, joined with free neighbours."""
        block.is_held = False
        self.counts.allocated_bytes -= block.nbytes
        for neighbour in (block.before, block.after):
            if neighbour is not None and not neighbour.is_held:
                self._remove(neighbour)
                _absorb(block, neighbour)
        self._insert(block)

    def flush(self) -> int:
        """Give every segment that lies wholly free back to the driver; how many there were."""
        whole = [entry[2] for entries in self._free.values() for entry in entries if not entry[2].is_split]
        for block in whole:
            self._remove(block)
            self.counts.reserved_bytes -= block.nbytes
            self.counts.segments -= 1
        self._free = {pool: entries for pool, entries in self._free.items() if entries}
        return len(whole)

    def _fits(self, segment_bytes: int) -> bool:
        return self.counts.reserved_bytes + segment_bytes <= self.capacity_bytes

    def _best_fit(self, pool: _Pool, wanted: int) -> Block | None:
        entries = self._free.get(pool, [])
        place = bisect.bisect_left(entries, (wanted,))
        if place == len(entries):
            return None
        block = entries[place][2]
        self._remove(block)
        return block

    def _hand_out(self, block: Block, wanted: int) -> Block:
        """Hold a block that is in no pool, and put the part of it that is not wanted into its pool."""
        spare = block.nbytes - wanted
        is_small = block.pool[1]
        if spare >= ROUNDING_BYTES if is_small else spare > SMALL_BYTES:
            rest = Block(block.pool, spare, next(self._numbers))
            rest.before, rest.after = block, block.after
            if block.after is not None:
                block.after.before = rest
            block.after, block.nbytes = rest, wanted
            self._insert(rest)
        block.is_held = True
        self.counts.allocated_bytes += block.nbytes
        self.counts.peak_bytes = max(self.counts.peak_bytes, self.counts.allocated_bytes)
        return block

    def _insert(self, block: Block) -> None:
        bisect.insort(self._free.setdefault(block.pool, []), (block.nbytes, block.number, block))
        self.counts.inactive_split_bytes += block.nbytes if block.is_split else 0

    def _remove(self, block: Block) -> None:
        entries = self._free[block.pool]
        del entries[bisect.bisect_left(entries, (block.nbytes, block.number))]
        self.counts.inactive_split_bytes -= block.nbytes if block.is_split else 0

    def _out_of_memory(self, nbytes: int, segment_bytes: int) -> OutOfDeviceMemory:
        counts = self.counts
        counts.ooms += 1
        idle = counts.reserved_bytes - counts.allocated_bytes
        return OutOfDeviceMemory(
            f"{nbytes} bytes asked for, which take a segment of {segment_bytes}; of {self.capacity_bytes} bytes "
            f"{counts.allocated_bytes} are held and {idle} more are reserved but lie in pools that cannot give them; "
            "use fewer workers, smaller batches, or a larger device"
        )


def segment_for(nbytes: int) -> int:
    """How large a segment the driver is asked for when no pool has a block of a rounded size."""
    if nbytes <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if nbytes < MIDDLE_BYTES:
        return MIDDLE_SEGMENT_BYTES
    return _rounded(nbytes, LARGE_ROUNDING_BYTES)


def _rounded(nbytes: int, step: int) -> int:
    return max(step, -(-nbytes // step) * step)


def _absorb(block: Block, neighbour: Block) -> None:
    """Make a free neighbour, which is in no pool, part of the block."""
    block.nbytes += neighbour.nbytes
    if neighbour is block.before:
        block.before, far = neighbour.before, neighbour.before
        if far is not None:
            far.after = block
    else:
        block.after, far = neighbour.after, neighbour.after
        if far is not None:
            far.before = block
