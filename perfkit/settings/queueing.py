"""When does a batch leave, who may wait for one, and who goes first?"""

from __future__ import annotations

import dataclasses
import itertools

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

BATCH_POLICIES = ("fixed", "adaptive")
PADDINGS = ("longest", "buckets")
QUEUE_POLICIES = ("reject", "block", "caller_runs", "drop_oldest", "discard", "shed")
LANE_ORDERS = ("strict", "shares")
DEFAULT_LANE = "default"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings(Checked):
    """When a batch leaves, by size or by the age of its first item, and how its items come to one length."""

    max_size: int = field(1, "most requests in one call of the model; 1 turns batching off", low=1, high=1024)
    max_delay_s: float = field(
        0.0, "window, counted from the first item; 0 = an idle worker never waits", low=0.0, high=60.0
    )
    policy: str = field(
        "fixed",
        "fixed = max_size and max_delay_s; adaptive = size (max_size at most) and window follow the arrival rate "
        "inside p99_budget_s",
        choices=BATCH_POLICIES,
    )
    p99_budget_s: float = field(
        0.1, "from the queue to the end of the batch, without the wait for a worker (adaptive)", low=0.001, high=60.0
    )
    best_size: int | None = field(
        None, "size that serves the model best, as measured; only used to warn; none = max_size", low=1, high=1024
    )
    padding: str = field(
        "longest", "longest = to the longest item; buckets = to the next of the lengths in buckets", choices=PADDINGS
    )
    buckets: str = field(
        "16/32/64/128/256", "ascending lengths to pad to; longer items are padded to the longest (padding = buckets)"
    )

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        """The lengths in `buckets`, ascending; raises ConfigError."""
        parts = self.buckets.split("/")
        if not all(part.isdecimal() and len(part) <= 9 for part in parts):
            raise ConfigError(f"batch.buckets is {self.buckets!r}; it takes whole numbers such as 16/32/64")
        sizes = tuple(map(int, parts))
        if sizes[0] < 1 or any(one >= other for one, other in itertools.pairwise(sizes)):
            raise ConfigError(f"batch.buckets is {self.buckets!r}; the lengths must ascend, from 1 or more")
        return sizes

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        assert self.bucket_sizes  # raises for what are none
        if self.policy == "adaptive" and self.max_size == 1:
            raise ConfigError("batch.policy is adaptive with batch.max_size = 1; give the largest size that it may use")
        if self.policy == "adaptive" and self.max_delay_s:
            raise ConfigError(
                f"batch.max_delay_s is {self.max_delay_s:g} with batch.policy = adaptive, which finds the window; "
                "set it to 0, and batch.p99_budget_s to what a request may take"
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings(Checked):
    """How much may wait, for how long, and what becomes of a request for which there is no room."""

    depth: int | None = field(
        256,
        "most requests admitted and not yet in a batch (thread_per_request: not yet answered); "
        "one more meets the policy; none = no bound",
        low=1,
        high=1_000_000,
    )
    policy: str = field(
        "reject",
        "of a full queue: reject; block = wait outside for room; caller_runs = the event loop runs it and "
        "accepts nothing meanwhile; drop_oldest = it takes the oldest one's place; discard = rejected as "
        "discarded; shed = also rejected as soon as its answer would miss the deadline",
        choices=QUEUE_POLICIES,
    )
    block_s: float = field(1.0, "longest wait outside a full queue (policy = block)", low=0.001, high=600.0)
    deadline_s: float | None = field(
        None, "a request older than this is dropped before its next stage; none = never", low=0.001, high=3600.0
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LaneSettings(Checked):
    """One class of requests; they name it in the header Perfkit-Lane."""

    priority: int = field(1, "lanes with a smaller number go first (lane_order.policy = strict)", low=0, high=1000)
    share: float = field(1.0, "part of what leaves, against the others' (policy = shares)", low=0.001, high=1000.0)
    depth: int | None = field(None, "as queue.depth, for this lane alone; none = queue.depth", low=1, high=1_000_000)
    deadline_s: float | None = field(
        None, "as queue.deadline_s, for this lane; none = queue.deadline_s", low=0.001, high=3600.0
    )
    breaker: bool | None = field(None, "as breaker.enabled, for this lane, whose breaker is its own; none = that one")
    workers: int = field(0, "model workers of its own; 0 = it shares the others' workers", low=0, high=1024)
    stream_priority: int = field(
        0, "of its own workers' streams on the device: kernels of a smaller one go first", low=-2, high=0
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LaneOrderSettings(Checked):
    """Which lane's turn it is, of those that share workers."""

    policy: str = field(
        "strict", "strict = by priority, equals by age; shares = in proportion to the shares", choices=LANE_ORDERS
    )
    aging_s: float | None = field(
        1.0,
        "strict: a lane whose first request has waited so long gets one in ten; none = it may starve",
        low=0.001,
        high=3600.0,
    )
