"""What has to happen before what? Streams, events and the memory that they touch, without any torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable


class RuleBroken(AssertionError):
    """A rule of CUDA was broken; `rule` is its short name."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@dataclasses.dataclass(eq=False)
class Line:
    """One stream: how far it is, what comes before its next work, and when the device is through with it."""

    number: int
    priority: int = 0
    position: int = 0
    before: dict[int, int] = dataclasses.field(default_factory=dict)  # position in every stream, its own included
    free_ns: int = 0


@dataclasses.dataclass(eq=False)
class Mark:
    """One recording of an event."""

    before: dict[int, int]
    at_ns: int


class Order:
    """What the host has seen done, and what each piece of memory was last used for. One lock guards it all, outside."""

    def __init__(self) -> None:
        self._done: dict[int, int] = {}  # position in every stream up to which the host has seen everything done

    def advance(self, line: Line, reads: Iterable[Block], writes: Iterable[Block], span_ns: tuple[int, int]) -> None:
        """Work on a stream at (now, length); raises RuleBroken when it touches what is still in use elsewhere."""
        reads, writes = list(reads), list(writes)
        for block in reads:
            self._require(block.writer, line, block, "is written")
        for block in writes:
            self._require(block.writer, line, block, "is written")
            for use in block.readers.items():
                self._require(use, line, block, "is read")
        line.position += 1
        line.before[line.number] = line.position
        now_ns, length_ns = span_ns
        line.free_ns = max(now_ns, line.free_ns) + length_ns
        for block in reads:
            block.readers[line.number] = line.position
        for block in writes:
            block.writer, block.readers = (line.number, line.position), {}

    def mark(self, line: Line, now_ns: int) -> Mark:
        """An event after everything on the stream so far."""
        line.position += 1
        line.before[line.number] = line.position
        line.free_ns = max(now_ns, line.free_ns)
        return Mark(dict(line.before), line.free_ns)

    def join(self, line: Line, mark: Mark) -> None:
        """The stream's next work comes after the event."""
        for number, position in mark.before.items():
            line.before[number] = max(position, line.before.get(number, 0))
        line.free_ns = max(line.free_ns, mark.at_ns)

    def see_done(self, mark: Mark) -> None:
        """The host has waited for the event."""
        for number, position in mark.before.items():
            self._done[number] = max(position, self._done.get(number, 0))

    def is_seen_done(self, mark: Mark) -> bool:
        """Whether the host has waited for the event, or for a later one."""
        return all(self._done.get(number, 0) >= position for number, position in mark.before.items())

    def require_seen(self, block: Block, is_write: bool) -> None:
        """The host touches pinned memory; raises RuleBroken when a copy still does."""
        if block.writer is not None and not self._is_done(block.writer):
            raise RuleBroken("pinned read", f"{block.name} is used before the copy into it is known to be over")
        if is_write and not all(map(self._is_done, block.readers.items())):
            raise RuleBroken("staging rewrite", f"{block.name} is written before the copy from it is known to be over")

    def is_free_for(self, block: Block) -> bool:
        """Whether the stream that it came from may be given the memory again, as the allocator will do at once."""
        uses = [*block.readers.items(), *([block.writer] if block.writer else [])]
        return all(use[0] == block.home.number or self._is_ordered(use, block.home) for use in uses)

    def _require(self, use: tuple[int, int] | None, line: Line, block: Block, what: str) -> None:
        if use is not None and not self._is_ordered(use, line):
            raise RuleBroken(
                "cross-stream use",
                f"{block.name} {what} by stream {use[0]} and used by {line.number}; no event orders it",
            )

    def _is_ordered(self, use: tuple[int, int], line: Line) -> bool:
        return self._is_done(use) or line.before.get(use[0], 0) >= use[1]

    def _is_done(self, use: tuple[int, int]) -> bool:
        return self._done.get(use[0], 0) >= use[1]


@dataclasses.dataclass(eq=False)
class Block:
    """Memory of the device, or pinned memory: who wrote it last, and who has read it since."""

    name: str
    home: Line
    writer: tuple[int, int] | None = None
    readers: dict[int, int] = dataclasses.field(default_factory=dict)
    on_free: Callable[[Block], None] | None = None

    def __del__(self) -> None:
        if self.on_free is not None:
            self.on_free(self)
