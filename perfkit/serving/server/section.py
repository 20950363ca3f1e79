"""How are a service's queues cut up, and who works at which?

A section is a queue with a crew of its own. Without lanes there is one; lanes that share workers share
a section, and a lane with workers of its own is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.adaptive import AdaptiveBatch
from perfkit.serving.scheduling.decisions import Limits
from perfkit.serving.scheduling.lanes import Lane, LaneScheduler
from perfkit.serving.scheduling.order import Order, SharedOrder, StrictOrder, Turn
from perfkit.serving.scheduling.scheduler import Scheduler
from perfkit.serving.server.crews.crew import Crew
from perfkit.serving.server.dispatcher import Dispatcher
from perfkit.serving.server.job import Job
from perfkit.serving.server.wishes import LaneEntry, Lanes
from perfkit.settings.server import ServerSettings

AnyScheduler = Scheduler[Job] | LaneScheduler[Job]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """A queue and its crew."""

    dispatcher: Dispatcher
    crew: Crew


Opener = Callable[[AnyScheduler, LaneEntry | None], Section]
"""Makes the section of a scheduler; the lane is the one that it is for alone, None = all that share."""


def build_sections(settings: ServerSettings, lanes: Lanes | None, opened: Opener) -> list[Section]:
    """The section of every lane, by the lanes' numbers; of lane 0 alone where there are none."""
    limits = _limits(settings)
    if lanes is None:
        return [opened(Scheduler(limits), None)]
    sharing = [lane for lane in lanes.values() if not lane.settings.workers]
    shared = opened(_shared_scheduler(settings, limits, sharing), None) if sharing else None
    return [
        shared if shared is not None and lane in sharing else opened(Scheduler(_of_lane(limits, lane)), lane)
        for lane in lanes.values()
    ]


def tuner_of(settings: ServerSettings) -> AdaptiveBatch | None:
    """What finds batch size and window while the service runs; None when they are fixed."""
    if settings.batch.policy == "fixed":
        return None
    return AdaptiveBatch(settings.batch.max_size, round(settings.batch.p99_budget_s * NS_PER_S))


def _shared_scheduler(settings: ServerSettings, limits: Limits, sharing: list[LaneEntry]) -> LaneScheduler[Job]:
    lanes = {
        lane.number: Lane[Job](_of_lane(limits, lane), Turn(priority=lane.settings.priority, share=lane.settings.share))
        for lane in sharing
    }
    return LaneScheduler(limits, lanes, _order(settings))


def _order(settings: ServerSettings) -> Order:
    rule = settings.lane_order
    if rule.policy == "shares":
        return SharedOrder()
    return StrictOrder(None if rule.aging_s is None else round(rule.aging_s * NS_PER_S))


def _of_lane(limits: Limits, lane: LaneEntry) -> Limits:
    return dataclasses.replace(limits, depth=lane.depth)


def _limits(settings: ServerSettings) -> Limits:
    return Limits(
        max_size=settings.batch.max_size,
        max_delay_ns=round(settings.batch.max_delay_s * NS_PER_S),
        depth=settings.queue.depth,
        policy=settings.queue.policy,
        block_ns=round(settings.queue.block_s * NS_PER_S),
    )
