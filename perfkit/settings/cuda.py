"""How is an NVIDIA GPU used?"""

from __future__ import annotations

import dataclasses

from perfkit.fields import Checked, field

WAITS = ("blocking", "spinning")


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
