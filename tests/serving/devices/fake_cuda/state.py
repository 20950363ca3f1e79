"""What does the stand-in for the GPU know? Its streams, its memory, what was called, and which rules were broken."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from fake_cuda.order import Block, Line, Mark, Order, RuleBroken
from perfkit.clock import REAL_CLOCK, Clock

STREAMS_OF_A_PRIORITY = 32
KERNEL_NS = 2_000
COPY_NS = 10_000
BYTES_PER_NS = 25
CYCLES_PER_NS = 1.98


class _Thread(threading.local):
    """The calling thread's current stream."""

    line: Line | None = None


class FakeCuda:
    """A GPU of so many bytes. Safe from several threads."""

    def __init__(self, clock: Clock = REAL_CLOCK, capacity_bytes: int = 1 << 30) -> None:
        self.clock = clock
        self.capacity_bytes = capacity_bytes
        self.cap_ratio = 1.0
        self.calls: list[str] = []
        self.broken: list[RuleBroken] = []
        self.allocated_bytes = 0
        self.ooms = 0
        self.lost = ""  # CUDA's words, once the device is lost
        self.default = Line(0)
        self._is_loading = True  # until the default stream was waited for, models may still be loaded on it
        self.lines: list[Line] = [self.default]
        self._order = Order()
        self._lock = threading.RLock()  # guards everything of this object and of its parts
        self._thread = _Thread()

    def rule(self, rule: str, what: str) -> RuleBroken:
        """Write a broken rule down; the caller raises it."""
        self.broken.append(RuleBroken(rule, what))
        return self.broken[-1]

    def called(self, name: str) -> None:
        """Write a call down; raises what CUDA says once the device is lost."""
        self.calls.append(name)
        if self.lost:
            raise torch.AcceleratorError(f"CUDA error: {self.lost}")

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self.called(name)
        with self._lock:
            try:
                yield
            except RuleBroken as error:
                self.broken.append(error)
                raise

    def open_line(self, priority: int) -> Line:
        """A new stream."""
        with self._step("Stream"):
            alike = sum(line.priority == priority for line in self.lines[1:])
            if alike == STREAMS_OF_A_PRIORITY:
                raise RuleBroken("stream per request", f"torch has {alike} streams of priority {priority}, no more")
            self.lines.append(Line(len(self.lines), priority))
            return self.lines[-1]

    @property
    def current(self) -> Line:
        """The calling thread's current stream."""
        return self._thread.line or self.default

    def set_current(self, line: Line) -> None:
        """Make a stream the calling thread's current one."""
        self._thread.line = line

    def allocate(self, nbytes: int, line: Line) -> Block:
        """Memory of the device, which goes back when nobody holds the block; raises torch's out of memory."""
        with self._lock:
            if self.allocated_bytes + nbytes > self.cap_ratio * self.capacity_bytes:
                self.ooms += 1
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {nbytes} bytes.")
            self.allocated_bytes += nbytes
            return Block(f"device memory of {nbytes} bytes", line, on_free=lambda block: self._freed(block, nbytes))

    def pinned(self, nbytes: int) -> Block:
        """Pinned memory, which torch gives to nobody else before the copies with it are over."""
        self.called("pin")
        return Block(f"pinned memory of {nbytes} bytes", self.default)

    def kernel(self, name: str, reads: Iterable[Block], writes: Iterable[Block], length_ns: int = KERNEL_NS) -> None:
        """Work on the current stream."""
        with self._step(name):
            line = self.current
            if line is self.default and not self._is_loading:
                raise RuleBroken("outside the worker's stream", f"{name} ran on the default stream")
            self._order.advance(line, reads, writes, (self.clock.now_ns(), length_ns))

    def copy(self, name: str, source: Block | None, target: Block | None, nbytes: int) -> None:
        """A copy on the current stream; a side that is pageable has no block."""
        length_ns = COPY_NS + nbytes // BYTES_PER_NS
        self.kernel(name, [source] if source else [], [target] if target else [], length_ns)

    def record(self, line: Line) -> Mark:
        """An event on a stream."""
        with self._step("record"):
            return self._order.mark(line, self.clock.now_ns())

    def join(self, line: Line, mark: Mark) -> None:
        """The stream waits for the event."""
        with self._step("wait"):
            self._order.join(line, mark)

    def finish(self, mark: Mark) -> None:
        """The calling thread waits for the event."""
        self.called("synchronize")
        self.clock.sleep_until(mark.at_ns)
        with self._lock:
            self._order.see_done(mark)

    def finish_line(self, line: Line) -> None:
        """The calling thread waits for one stream."""
        if line is self.default:
            self._is_loading = False
        self.finish(self.record(line))

    def has_happened(self, mark: Mark) -> bool:
        """Whether the event has, which the host knows from then on."""
        with self._step("query"):
            if self.clock.now_ns() < mark.at_ns:
                return False
            self._order.see_done(mark)
            return True

    def elapsed_ns(self, start: Mark, end: Mark) -> int:
        """Time between two events."""
        with self._step("elapsed_time"):
            if not (self._order.is_seen_done(start) and self._order.is_seen_done(end)):
                raise RuleBroken("elapsed_time before synchronize", "nobody has waited for one of the events")
            return end.at_ns - start.at_ns

    def host_uses(self, block: Block, is_write: bool) -> None:
        """The host reads or writes pinned memory."""
        with self._step("host write" if is_write else "host read"):
            self._order.require_seen(block, is_write)

    def _freed(self, block: Block, nbytes: int) -> None:
        """Nobody holds the memory any more. Called by whoever let go last, to whom nothing can be raised."""
        with self._lock:
            self.allocated_bytes -= nbytes
            if not (self.lost or self._order.is_free_for(block)):
                what = f"{block.name} of stream {block.home.number} was let go while another stream still used it"
                self.broken.append(RuleBroken("freed in use", what))
