"""Which threads and processes do the work, and on which cores?"""

from __future__ import annotations

import dataclasses

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field

PLACEMENTS = ("inline", "threads", "processes")
PINNING_POLICIES = ("none", "workers")
CONCURRENCY_MODELS = ("pool", "serial", "thread_per_request", "elastic", "asyncio", "processes")
COMING_AND_GOING = ("thread_per_request", "elastic")  # models without a fixed number of threads
ONE_AT_A_TIME = ("serial", "thread_per_request")  # models whose thread carries one request through every stage


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResidentSettings(Checked):
    """How many of the replicas' copies of the model the device has room for."""

    models: int | None = field(
        None,
        "copies of the weights on the device, one a replica; the others wait in host memory and are loaded in place of "
        "the least recently used (stage model_load); none = the replicas share one copy",
        low=1,
        high=64,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageSettings(Checked):
    """Where preprocess or postprocess runs: on the model worker, or in a pool of threads or of processes."""

    placement: str = field(
        "inline",
        "inline = on the model worker; threads = a pool of its own; processes = child processes, each with its own GIL",
        choices=PLACEMENTS,
    )
    threads: int = field(1, "threads of the pool (placement = threads)", low=1, high=256)
    processes: int = field(1, "child processes of the pool (placement = processes)", low=1, high=64)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencySettings(Checked):
    """Which threads serve the queue."""

    model: str = field(
        "pool",
        "pool = a fixed number of workers; serial = one thread, one request at a time; thread_per_request = a new "
        "thread for each, queue.depth at most; elastic = core to max threads by Java's rule; asyncio = coroutines on "
        "a loop that hand each batch to an executor of as many threads as workers: three thread hops more a batch; "
        "processes = as many child processes as workers, each with weights of its own",
        choices=CONCURRENCY_MODELS,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSettings(Checked):
    """Bounds of the elastic model; its queue holds queue.depth, and only when that is full it grows past core."""

    core: int = field(2, "threads that stay (concurrency.model = elastic)", low=0, high=1024)
    max: int = field(8, "most threads; one above core starts only when the queue is full", low=1, high=4096)
    keep_alive_s: float = field(60.0, "a thread above core ends after so long without work", low=0.0, high=86_400.0)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.max < self.core:
            raise ConfigError(f"elastic.max is {self.max} with elastic.core = {self.core}; give core or more")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PinningSettings(Checked):
    """Which cores the threads run on."""

    policy: str = field(
        "none",
        "none = where the system puts them; workers = each model worker on intra_op_threads cores of its own, physical "
        "cores first, and everything else on the cores that are left",
        choices=PINNING_POLICIES,
    )
