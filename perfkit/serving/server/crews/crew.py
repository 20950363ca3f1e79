"""Who staffs a pipeline's queue? What every crew offers, whichever rule it hires its threads by."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from perfkit.serving.scheduling.decisions import CallerRuns, Parked, Rejected
from perfkit.serving.server.job import Job


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Headcount:
    """Model worker threads of a crew: now, at most so far, and started in all."""

    current: int
    peak: int
    started: int

    def __add__(self, other: Headcount) -> Headcount:
        """Two crews side by side; their peaks need not have met, so the sum is the most that can have been."""
        return Headcount(
            current=self.current + other.current,
            peak=self.peak + other.peak,
            started=self.started + other.started,
        )


class Crew(Protocol):
    """The threads that take jobs from a dispatcher. Safe for any thread."""

    only_queues: bool  # nobody is ever there for one job alone: to be admitted and to be queued may be one step

    def start(self) -> tuple[int, ...]:
        """Get ready to serve; the effective intra-op threads of each station. Raises what the model raises."""

    def admit(self, jobs: Sequence[Job]) -> Rejected | Parked | CallerRuns | None:
        """May the jobs of one request come in, all or none? None means yes. Only for the event loop's thread."""

    def takes(self, job: Job) -> bool:
        """Whether the crew has taken an admitted job straight on, past the queue. May be called under its lock."""

    def put(self, job: Job) -> None:
        """An admitted job goes into the queue."""

    def close(self) -> None:
        """Admit nothing more, finish what was admitted, end every thread. Blocks."""

    def headcount(self) -> Headcount:
        """How many threads there are and were."""
