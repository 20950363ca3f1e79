"""What can the scheduler answer? Come in or why not; send a batch, wait until an instant, or idle."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar


class Waiting(Protocol):
    """What the scheduler needs to know of a queued item; the rest of it is none of its business."""

    queued_ns: int
    deadline_ns: int  # 0 = never expires
    lane: int  # 0 where there are no lanes
    is_alone: bool  # wants a batch to itself


Item = TypeVar("Item", bound=Waiting)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Not admitted: why, and after how many seconds trying again makes sense."""

    reason: str
    retry_after_s: float


class Displaced(NamedTuple, Generic[Item]):
    """Admitted in place of these, the oldest of the queue: they leave it unserved."""

    items: Sequence[Item]
    retry_after_s: float


class Parked(NamedTuple):
    """Not admitted yet: waits at the door for room, at most until this instant."""

    until_ns: int


class CallerRuns(NamedTuple):
    """Not admitted: whoever brought it runs it, and brings nothing else meanwhile."""


Admission = Rejected | Displaced[Item] | Parked | CallerRuns | None
"""None = admitted, the usual answer."""


class Send(NamedTuple, Generic[Item]):
    """A worker takes this batch now. `due_ns` is when it could have left had a worker been there."""

    batch: list[Item]
    due_ns: int
    expired: list[Item]


class WaitUntil(NamedTuple, Generic[Item]):
    """Nothing leaves before this instant unless something arrives."""

    until_ns: int
    expired: list[Item]


class Idle(NamedTuple, Generic[Item]):
    """Nothing waits."""

    expired: list[Item]


Decision = Send[Item] | WaitUntil[Item] | Idle[Item]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the scheduler: batch size, window, how much may wait, and what happens to what does not fit.

    `policy` is one of the setting queue.policy; `block_ns` is how long `block` lets a request wait at the door.
    """

    max_size: int
    max_delay_ns: int
    depth: int | None  # None = no bound
    policy: str = "reject"
    block_ns: int = 0
