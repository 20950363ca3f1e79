"""Which settings contradict each other? Each refusal tells what to set instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from perfkit.errors import ConfigError
from perfkit.settings.workers import COMING_AND_GOING, ONE_AT_A_TIME

if TYPE_CHECKING:
    from perfkit.settings.server import ServerSettings

_LANE_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


def check_concurrency(settings: ServerSettings) -> None:
    """Refuse what the concurrency model cannot do; raises ConfigError."""
    model = settings.concurrency.model
    if model in ("pool", "asyncio", "processes") and settings.min_workers > settings.workers:
        raise ConfigError(
            f"min_workers is {settings.min_workers} with workers = {settings.workers}; it takes at most as many"
        )
    where = f"with concurrency.model = {model}"
    if model == "serial" and settings.workers != 1:
        raise ConfigError(f"workers is {settings.workers} {where}; serial is one thread (set workers = 1, or pool)")
    if model == "serial" and settings.replicas != 1:
        raise ConfigError(f"replicas is {settings.replicas} {where}; serial is one thread (set replicas = 1, or pool)")
    if model == "processes" and settings.resident.models is not None:
        raise ConfigError(
            f"resident.models is {settings.resident.models} {where}, whose processes each have weights of their own "
            "(set resident.models = none, or use pool)"
        )
    own = [name for name, lane in settings.lanes.items() if lane.workers]
    if model == "serial" and own:
        raise ConfigError(f"lane {own[0]} has workers of its own {where}; serial is one thread (set its workers = 0)")
    if model in ONE_AT_A_TIME and settings.batch.max_size != 1:
        raise ConfigError(
            f"batch.max_size is {settings.batch.max_size} {where}; its threads serve one request at a time "
            "(set batch.max_size = 1, or use pool or elastic to batch)"
        )
    if settings.pinning.policy == "workers" and model in COMING_AND_GOING:
        raise ConfigError(
            f"pinning.policy is workers {where}, whose threads come and go; "
            "set pinning.policy = none, or use pool, serial, asyncio or processes"
        )
    stages = {"preprocess": settings.preprocess, "postprocess": settings.postprocess}
    inline = ("preprocess",) if model == "elastic" else tuple(stages) if model in ONE_AT_A_TIME else ()
    for stage in inline:
        if stages[stage].placement != "inline":
            raise ConfigError(
                f"{stage}.placement is {stages[stage].placement} {where}; a thread of its crew does that stage itself "
                f"(set {stage}.placement = inline, or use pool)"
            )


def check_lanes(settings: ServerSettings) -> None:
    """Refuse names that no header can carry, and what has no queue to put lanes in; raises ConfigError."""
    for name in settings.lanes:
        if not _LANE_NAME.fullmatch(name):
            raise ConfigError(f"a lane is called {name!r}; it takes letters, digits, _ and -, at most 64 of them")
    for name, lane in settings.lanes.items():
        if lane.stream_priority and not lane.workers:
            raise ConfigError(
                f"lane {name} has stream_priority = {lane.stream_priority} and no workers of its own, whose streams "
                "that would be (set its workers to 1 or more)"
            )
    model = settings.concurrency.model
    if settings.lanes and model == "thread_per_request":
        raise ConfigError(
            f"lanes are set with concurrency.model = {model}, which has no queue to put one before another in "
            "(use another model, or take the lanes away)"
        )
