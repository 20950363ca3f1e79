"""What do the checks need of a device beside the device protocol?

Kernels of a known length, work that fills the device, two networks with known outputs, copies from
both kinds of host memory, and the board's meters. `cuda_bench` and `simulated_bench` offer it.
A `Work` belongs to the worker that asked for it: it may keep buffers on that worker's stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from perfkit.serving.devices.device import Device, Span, Stream
from perfkit.serving.devices.lane import Batch

Work: TypeAlias = Callable[[Any], Any]
EAGER = "inference_mode"
GRAPH = "cuda_graph"
BLOCKING = "blocking"
SPINNING = "spinning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The board's meters at one instant; None where the driver does not tell, with the reason in `missing`."""

    gpu_util_ratio: float | None = None
    sm_clock_hz: float | None = None
    throttle_mask: int | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitors:
    """The performance monitors over a window; None where they do not tell, with the reason in `missing`."""

    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    missing: str = ""


class Bench(Protocol):
    """A device under test. Safe from several threads once it is open."""

    label: str
    is_simulated: bool

    @property
    def device(self) -> Device:
        """What serves requests, too."""

    def environment(self) -> dict[str, Any]:
        """Names and versions that a reader of the figures needs."""

    def waiting(self, wait: str) -> Bench:
        """The same device, whose threads wait asleep (BLOCKING) or on the processor (SPINNING)."""

    def mlp(self) -> Work:
        """The MLP's predict."""

    def mlp_batch(self, seed: int) -> Batch:
        """One row of 64 numbers, another for every seed."""

    def mlp_expected(self, batches: Sequence[Batch]) -> Sequence[Any]:
        """What the MLP gives for each of them on the CPU."""

    def encoder(self, level: str, sizes: tuple[int, ...] = (1,)) -> Work:
        """The encoder at a level of execution (EAGER, GRAPH), ready for batches of these sizes."""

    def texts(self, size: int, seed: int) -> Batch:
        """Token ids and lengths of a batch."""

    def expected(self, batch: Batch) -> Any:
        """What the encoder gives for it on the CPU in float32."""

    def spin(self, seconds: float) -> Work:
        """One block that keeps one multiprocessor for `seconds` of the highest clock."""

    def spin_cycles(self, seconds: float) -> int:
        """How many cycles such a kernel counts."""

    def multiply(self, seconds: float) -> Work:
        """A chain of matrix products that fills the device for about so long."""

    def copy(self, nbytes: int, is_pinned: bool) -> Callable[[Stream, Span], None]:
        """A copy to the device from pinned or pageable memory."""

    def board(self) -> Board:
        """The meters now."""

    def monitors(self, seconds: float) -> Monitors:
        """The performance monitors over the next so many seconds; blocks that long."""

    def oom_count(self) -> int:
        """Allocations that failed so far."""

    def held_bytes(self) -> int:
        """What the allocator holds, used or kept."""

    def unordered_uses(self, requests: int) -> list[str]:
        """Serve so many requests under a checker of the order between streams; what it found."""
