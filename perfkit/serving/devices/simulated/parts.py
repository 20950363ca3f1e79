"""What can a preset add to the plain times of a service: launches, an allocator, a board with its meters?

Each part is off at its defaults and then costs nothing. All figures are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

MODELLED = "modelled"
HELD = "held"
EXACT = "exact"
CACHING = "caching"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchParts(Checked):
    """What it costs the host to hand one call's kernels to the device."""

    kernels: int = field(1, "kernels of one call", low=1, high=100_000)
    launch_s: float = field(0.0, "host time of one launch, with Python's lock; 0 = free", low=0.0, high=1.0)
    graph_launch_s: float | None = field(
        None,
        "a call is one captured graph, launched as a whole in this time; none = kernel by kernel",
        low=0.0,
        high=1.0,
    )
    chunks: int = field(
        1, "pieces of a call that the timeline keeps apart; priority acts between two of them", low=1, high=4096
    )
    lock: str = field(
        MODELLED,
        "modelled = launching takes the simulated lock for its time; held = on a real clock the launching thread "
        "really computes that long and so holds Python's own lock (on any other clock as modelled)",
        choices=(MODELLED, HELD),
    )

    def __post_init__(self) -> None:
        # super() needs the class cell, which slots=True replaces; the base is named instead.
        Checked.__post_init__(self)
        if self.chunks > self.kernels:
            raise ConfigError(f"chunks is {self.chunks} with kernels = {self.kernels}; give at most one a kernel")

    @property
    def is_free(self) -> bool:
        """Whether handing a call over costs the host nothing."""
        return self.dispatch_s == 0.0

    @property
    def dispatch_s(self) -> float:
        """Host time of one call's launches."""
        return self.kernels * self.launch_s if self.graph_launch_s is None else self.graph_launch_s

    def pieces(self) -> list[tuple[float, float]]:
        """The call in pieces: the host time before each, and its share of the call's kernels."""
        bounds = [self.kernels * piece // self.chunks for piece in range(self.chunks + 1)]
        shares = [(end - start) / self.kernels for start, end in pairwise(bounds)]
        if self.graph_launch_s is None:
            return [(share * self.dispatch_s, share) for share in shares]
        return [(0.0 if piece else self.dispatch_s, share) for piece, share in enumerate(shares)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts(Checked):
    """How the device's memory is handed out, how much a call takes of it, and what that costs the host."""

    policy: str = field(
        EXACT,
        "exact = bytes are counted; caching = in segments that each stream keeps for itself, as torch's allocator does",
        choices=(EXACT, CACHING),
    )
    cap_ratio: float = field(1.0, "share of the memory that may be taken", low=0.001, high=1.0)
    context_bytes: int = field(0, "memory that the driver's context takes before anything else", low=0)
    stream_bytes: int = field(0, "memory that a stream keeps from its first call on (library workspace)", low=0)
    call_bytes: int = field(0, "memory that a call holds whatever its size", low=0)
    request_bytes: int = field(0, "further memory per request in the call", low=0)
    hit_s: float = field(0.0, "host time of an allocation out of kept memory", low=0.0, high=1.0)
    miss_s: float = field(0.0, "host time of an allocation that takes a new segment from the driver", low=0.0, high=1.0)
    segment_free_s: float = field(
        0.0, "host time for each segment given back, after the whole device has come to rest", low=0.0, high=1.0
    )
    empties: bool = field(
        False, "whether each call gives all kept memory back at its end, as torch.cuda.empty_cache() in a loop does"
    )

    def call_blocks(self, size: int) -> list[int]:
        """The blocks that a call with `size` requests holds until its device work is done."""
        blocks = [self.call_bytes, *[self.request_bytes] * size]
        return [nbytes for nbytes in blocks if nbytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardParts(Checked):
    """The board's meters; what is not given is not modelled, and its reading is absent."""

    sms: int | None = field(None, "streaming multiprocessors; none = not told", low=1, high=10_000)
    idle_w: float | None = field(None, "power at rest; with peak_w, else power is not modelled", low=0.0, high=10_000.0)
    peak_w: float | None = field(None, "power with all multiprocessors active", low=0.0, high=10_000.0)
    idle_mhz: int | None = field(None, "clock of the multiprocessors at rest", low=1, high=100_000)
    boost_mhz: int | None = field(None, "their clock while anything runs", low=1, high=100_000)
