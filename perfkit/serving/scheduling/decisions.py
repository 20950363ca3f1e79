"""What can the scheduler answer? Admit, reject, send a batch, wait until an instant, or idle."""

from __future__ import annotations

import dataclasses
from typing import Generic, NamedTuple, Protocol, TypeVar


class Waiting(Protocol):
    """What the scheduler needs to know of a queued item; the rest of it is none of its business."""

    queued_ns: int
    deadline_ns: int  # 0 = never expires


Item = TypeVar("Item", bound=Waiting)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Not admitted: why, and after how many seconds trying again makes sense."""

    reason: str
    retry_after_s: float


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
    """What bounds the scheduler: batch size, window, and how much may wait."""

    max_size: int
    max_delay_ns: int
    depth: int
