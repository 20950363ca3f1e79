"""What can be set on the reference server? One frozen record, checked once.

Each field says whether it changes *live* (drain, rebuild the pools, keep the model) or needs a
*restart*. `--set batch.max_size=8` and `--vary workers=1,2,4` reach any of them by its dotted name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field, named, nested
from perfkit.settings.checks import check_concurrency, check_lanes
from perfkit.settings.cuda import CudaSettings
from perfkit.settings.execution import ExecutionSettings
from perfkit.settings.guards import BreakerSettings, LimitSettings
from perfkit.settings.queueing import BatchSettings, LaneOrderSettings, LaneSettings, QueueSettings
from perfkit.settings.surroundings import HttpSettings, LedgerSettings, LogSettings
from perfkit.settings.workers import (
    ConcurrencySettings,
    ElasticSettings,
    PinningSettings,
    ResidentSettings,
    StageSettings,
)

TOPOLOGIES = ("staged", "carry")
LIGHT_MODELS = ("noop", "simulated")


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
    worker_nice: int = field(
        0,
        "niceness by which model workers stand behind the event loop on a core: more throughput where they fill all "
        "cores, less of it where others on the machine want them too",
        low=0,
        high=19,
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
        check_concurrency(self)
        self.execution.check_with(self.concurrency.model)
        check_lanes(self)


def is_light(model: str) -> bool:
    """Whether a model leaves the CPU to others, so that the load generator may have a core of its own."""
    return model.partition(":")[0] in LIGHT_MODELS
