"""What can be set on the reference server? One frozen record, checked once.

Each field says whether it changes *live* (drain, rebuild the pools, keep the model) or needs a
*restart*. `--set batch.max_size=8` and `--vary workers=1,2,4` reach any of them by its dotted name.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping

from perfkit.errors import ConfigError
from perfkit.execution_settings import ExecutionSettings
from perfkit.fields import Checked, field, named, nested

PLACEMENTS = ("inline", "threads", "processes")
TOPOLOGIES = ("staged", "carry")
PINNING_POLICIES = ("none", "workers")
CONCURRENCY_MODELS = ("pool", "serial", "thread_per_request", "elastic", "asyncio", "processes")
COMING_AND_GOING = ("thread_per_request", "elastic")  # models without a fixed number of threads
ONE_AT_A_TIME = ("serial", "thread_per_request")  # models whose thread carries one request through every stage
LIGHT_MODELS = ("noop", "simulated")
LIMIT_POLICIES = ("none", "fixed", "adaptive")
BATCH_POLICIES = ("fixed", "adaptive")
PADDINGS = ("longest", "buckets")
WAITS = ("blocking", "spinning")
LANE_ORDERS = ("strict", "shares")
DEFAULT_LANE = "default"
QUEUE_POLICIES = ("reject", "block", "caller_runs", "drop_oldest", "discard", "shed")
_LANE_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(Checked):
    """How fast requests may come, and how many may be in hand, from admission to answer."""

    bucket_rps: float | None = field(
        None, "inputs a second that are let in, the rest gets 429; none = any", low=0.001, high=1e6
    )
    burst: int = field(1, "inputs that may come at once after a pause (with bucket_rps)", low=1, high=1_000_000)
    policy: str = field(
        "none",
        "limit on inputs in hand: fixed = in_hand; adaptive = falls below it while answers take over target_s",
        choices=LIMIT_POLICIES,
    )
    in_hand: int = field(64, "most inputs in hand (policy = fixed or adaptive)", low=1, high=1_000_000)
    target_s: float = field(0.2, "latency that the adaptive policy holds", low=0.001, high=60.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings(Checked):
    """When a failing model is given a rest: requests get 503 at once, then a few probes decide."""

    enabled: bool = field(False, "whether failures of the model open the breaker")
    failure_ratio: float = field(0.5, "share of the remembered requests that must have failed", low=0.001, high=1.0)
    window: int = field(100, "how many of the last requests are remembered", low=1, high=100_000)
    least: int = field(10, "it never opens on fewer remembered requests than this", low=1, high=100_000)
    open_s: float = field(5.0, "how long nothing passes once it is open", low=0.001, high=3600.0)
    probes: int = field(3, "requests that then pass; all must succeed to close it again", low=1, high=1000)

    def __post_init__(self) -> None:
        # super() needs the class cell, which slots=True replaces; the base is named instead.
        Checked.__post_init__(self)
        if self.least > self.window:
            raise ConfigError(
                f"breaker.least is {self.least} and breaker.window {self.window}; "
                "so many are never remembered (raise window or lower least)"
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings(Checked):
    """Limits of the HTTP front."""

    max_body_bytes: int = field(8 << 20, "largest request body; above it the answer is 413", low=1, high=1 << 30)
    request_timeout_s: float = field(
        10.0, "a whole request must arrive within this time, else 408", low=0.1, high=600.0
    )
    keep_alive_s: float = field(75.0, "an idle connection is closed after this time", low=0.1, high=3600.0)
    pre_stop_s: float = field(
        0.0, "after SIGTERM: how long not ready is told while requests are still taken", low=0.0, high=600.0
    )
    drain_s: float = field(20.0, "how long a shutdown waits for accepted requests", low=0.0, high=600.0)
    server_timing: bool = field(False, "always answer with Server-Timing (else only when the request asks)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings(Checked):
    """The per-request record of instants."""

    stamps: bool = field(True, "stamp every instant; off only to measure what stamping costs", live=False)
    capacity: int = field(
        1 << 17,
        "requests kept until somebody reads them; the oldest are overwritten",
        live=False,
        low=1024,
        high=1 << 22,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings(Checked):
    """Which requests get a line of their own in the server's log."""

    slow_s: float | None = field(None, "a request that takes at least this long is logged", low=1e-6, high=3600.0)
    slow_ratio: float | None = field(
        None, "a request that takes this many times the median of late is logged", low=1.0, high=1000.0
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CudaSettings(Checked):
    """How an NVIDIA GPU is used (device = cuda, or auto where there is one)."""

    memory_cap_ratio: float | None = field(
        None,
        "share of the GPU's memory that torch may take, beyond which a call is out of memory; none = all",
        live=False,
        low=0.01,
        high=1.0,
    )
    connections: int | None = field(
        None,
        "hardware queues that the streams share (CUDA_DEVICE_MAX_CONNECTIONS): with more busy streams than queues "
        "some wait for each other; none = as the environment says, else CUDA's own choice",
        live=False,
        low=1,
        high=32,
    )
    wait: str = field(
        "blocking",
        "how a worker waits for the GPU: blocking = asleep; spinning = on the CPU, which then looks busy",
        live=False,
        choices=WAITS,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings(Checked):
    """Everything that a scan can vary on the reference server."""

    model: str = field("minilm", "minilm, resnet, mlp, noop, simulated:PRESET or module:Class", live=False)
    device: str = field(
        "auto",
        "auto = simulated for simulated models; cuda where torch finds a GPU and the model can use it; else cpu",
        live=False,
        choices=("auto", "cpu", "cuda", "simulated"),
    )
    topology: str = field(
        "staged",
        "staged = pools with a batcher between them; carry = one worker carries one request through",
        choices=TOPOLOGIES,
    )
    workers: int = field(1, "model workers (concurrency.model = pool, asyncio or processes)", low=1, high=1024)
    min_workers: int = field(
        1,
        "with fewer model workers at work, the others having died, it is not ready (pool, serial, asyncio, processes)",
        low=0,
        high=1024,
    )
    replicas: int = field(
        1,
        "replicas that share the model's weights in one process, each with its own queue of queue.depth and its own "
        "workers; a request goes to the one with the least in hand",
        low=1,
        high=64,
    )
    resident: ResidentSettings = nested(ResidentSettings)
    intra_op_threads: int = field(1, "threads that one model call may use inside torch", low=1, high=256)
    switch_interval_s: float | None = field(
        None,
        "after so long a thread that waits for Python's lock is given it; none = Python's own 0.005",
        low=1e-6,
        high=1.0,
    )
    seed: int = field(0, "seed of everything random in the server and the simulated device", live=False, low=0)
    check_outputs: bool = field(False, "a request whose output holds a NaN fails, its batch mates do not")
    concurrency: ConcurrencySettings = nested(ConcurrencySettings)
    elastic: ElasticSettings = nested(ElasticSettings)
    pinning: PinningSettings = nested(PinningSettings)
    execution: ExecutionSettings = nested(ExecutionSettings)
    preprocess: StageSettings = nested(StageSettings)
    postprocess: StageSettings = nested(StageSettings)
    batch: BatchSettings = nested(BatchSettings)
    queue: QueueSettings = nested(QueueSettings)
    lanes: Mapping[str, LaneSettings] = named(LaneSettings)
    lane_order: LaneOrderSettings = nested(LaneOrderSettings)
    limits: LimitSettings = nested(LimitSettings)
    breaker: BreakerSettings = nested(BreakerSettings)
    http: HttpSettings = nested(HttpSettings)
    ledger: LedgerSettings = nested(LedgerSettings)
    log: LogSettings = nested(LogSettings)
    cuda: CudaSettings = nested(CudaSettings)

    @property
    def is_simulated(self) -> bool:
        """Whether its figures come from a simulated device."""
        return self.model.startswith("simulated:")

    def __post_init__(self) -> None:
        # super() needs the class cell, which slots=True replaces; the base is named instead.
        Checked.__post_init__(self)
        if self.topology == "carry" and self.batch.max_size != 1:
            raise ConfigError(
                f"batch.max_size is {self.batch.max_size} with topology = carry; "
                "carry takes 1 (use topology = staged to batch)"
            )
        placements = (self.preprocess.placement, self.postprocess.placement)
        if self.topology == "carry" and placements != ("inline", "inline"):
            placed = next(placement for placement in placements if placement != "inline")
            raise ConfigError(
                f"placement is {placed} with topology = carry; carry runs every stage inline (use topology = staged)"
            )
        if self.is_simulated and "processes" in (*placements, self.concurrency.model):
            what = "concurrency.model" if self.concurrency.model == "processes" else "placement"
            raise ConfigError(
                f"{what} is processes with a simulated model, whose processes would not share its virtual device; "
                "use threads, or a real model"
            )
        if self.cuda != CudaSettings() and (self.is_simulated or self.device in ("cpu", "simulated")):
            where = f"model = {self.model}" if self.is_simulated else f"device = {self.device}"
            raise ConfigError(f"a setting of cuda is changed with {where}, where it does nothing; set device = cuda")
        _check_concurrency(self)
        self.execution.check_with(self.concurrency.model)
        _check_lanes(self)


def _check_concurrency(settings: ServerSettings) -> None:
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


def _check_lanes(settings: ServerSettings) -> None:
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


def is_light(model: str) -> bool:
    """Whether a model leaves the CPU to others, so that the load generator may have a core of its own."""
    return model.partition(":")[0] in LIGHT_MODELS
