"""How does torch run a model's network? The part of the server's settings about that."""

from __future__ import annotations

import dataclasses

from perfkit.errors import ConfigError
from perfkit.fields import Checked, field
from perfkit.settings.workers import COMING_AND_GOING

OWN_LEVEL = "own"
LEVELS = (OWN_LEVEL, "eager", "inference_mode", "jit", "jit_optimized", "compile", "aoti", "cuda_graph")
DTYPES = ("float32", "bfloat16", "float16")
_PER_WORKER = ("aoti", "cuda_graph")  # levels at which every worker has something large of its own


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings(Checked):
    """The level and the type in which the network computes. Each is compared with eager float32 before it serves."""

    level: str = field(
        OWN_LEVEL,
        "own = the model's own way; eager = torch as it is written, autograd on; inference_mode; jit = trace and "
        "freeze (legacy); jit_optimized = optimize_for_inference (legacy); compile = torch.compile, each size and "
        "length of batch.buckets compiled at the start; aoti = AOTInductor, a package for each worker; cuda_graph = a "
        "captured graph for each worker, size and length (device cuda)",
        live=False,
        choices=LEVELS,
    )
    dtype: str = field("float32", "type of weights and sums, at any level but own", live=False, choices=DTYPES)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if self.level == OWN_LEVEL and self.dtype != "float32":
            raise ConfigError(
                f"execution.dtype is {self.dtype} with execution.level = own, which is float32; "
                "set a level too, such as execution.level = inference_mode"
            )

    @property
    def compiles(self) -> bool:
        """Whether the start takes as long as a compiler does."""
        return self.level in ("compile", "aoti")

    def check_with(self, concurrency_model: str) -> None:
        """Refuse what a concurrency model cannot do; raises ConfigError."""
        where = f"execution.level is {self.level} with concurrency.model = {concurrency_model}"
        if self.level in _PER_WORKER and concurrency_model in COMING_AND_GOING:
            raise ConfigError(
                f"{where}, whose threads come and go, and each would load its own; "
                "set concurrency.model = pool, or another level"
            )
        if self.level == "compile" and concurrency_model == "processes":
            raise ConfigError(
                f"{where}, whose graphs could not be counted under load; "
                "set execution.level = aoti, or concurrency.model = pool"
            )
