"""How much of a GPU works while it is "busy"? Its performance monitors, on Hopper and later.

Two sample buffers are kept and swapped: each look fills the older one, and the metrics come from the
difference of the two. `gpu_util` says whether anything ran; `sm_active` how many multiprocessors did.

Data: `gpm_graphics`, `sm_active`, `sm_occupancy`, `tensor_active`, `dram_active`, `fp16_active` (ratio),
`gpm_pcie_tx`, `gpm_pcie_rx` (bytes/s).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from perfkit.clock import NS_PER_S, Clock
from perfkit.measuring.collectors.nvml.failure import Failure, Nonsense, from_code
from perfkit.measuring.collectors.nvml.fields import Datum, Handle, Nvml

SHORTEST_NS = NS_PER_S // 10  # NVML's reference: the interval between the two samples is to be longer
_PERCENT = 100.0
_BYTES_PER_MIB = float(1 << 20)
# Metric id, our name, unit, and what one of NVML's units is in ours.
METRICS = (
    (1, "gpm_graphics", "ratio", 1 / _PERCENT),
    (2, "sm_active", "ratio", 1 / _PERCENT),
    (3, "sm_occupancy", "ratio", 1 / _PERCENT),
    (5, "tensor_active", "ratio", 1 / _PERCENT),
    (10, "dram_active", "ratio", 1 / _PERCENT),
    (13, "fp16_active", "ratio", 1 / _PERCENT),
    (20, "gpm_pcie_tx", "bytes/s", _BYTES_PER_MIB),
    (21, "gpm_pcie_rx", "bytes/s", _BYTES_PER_MIB),
)


class Gpm:
    """The performance monitors of one GPU. Used by one thread: a sample buffer is not safe between several."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buffers: list[Any] = []  # the older sample first
        self._taken_ns: int | None = None
        self.failures: dict[str, Failure] = {}

    def __call__(self, nvml: Nvml, gpu: Handle) -> list[Datum]:
        """The metrics since the last look; nothing at the first, or when that is too short a time ago."""
        self._allocate(nvml)
        previous_ns, now_ns = self._taken_ns, self._clock.now_ns()
        if previous_ns is not None and now_ns - previous_ns <= SHORTEST_NS:
            return []
        # Its own answer counts: the query for support says yes on GPUs that then refuse.
        nvml.nvmlGpmSampleGet(gpu, self._buffers[0])
        self._buffers.reverse()
        self._taken_ns = now_ns
        return [] if previous_ns is None else self._metrics(nvml)

    def close(self, nvml: Nvml) -> None:
        """Give the buffers back."""
        while self._buffers:
            nvml.nvmlGpmSampleFree(self._buffers.pop())

    def _allocate(self, nvml: Nvml) -> None:
        while len(self._buffers) < 2:
            self._buffers.append(nvml.nvmlGpmSampleAlloc())

    def _metrics(self, nvml: Nvml) -> list[Datum]:
        wanted = nvml.c_nvmlGpmMetricsGet_t()
        wanted.version, wanted.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        wanted.sample1, wanted.sample2 = self._buffers
        for place, (metric_id, *_) in enumerate(METRICS):
            wanted.metrics[place].metricId = metric_id
        found = nvml.nvmlGpmMetricsGet(wanted)
        data = list(self._read(found.metrics[: len(METRICS)]))
        if not data:
            raise Nonsense(
                f"the GPU's monitors gave none of their metrics; {next(iter(self.failures.values())).reason}"
            )
        return data

    def _read(self, answers: Iterable[Any]) -> Iterable[Datum]:
        """The metrics that were given; each has a return value of its own."""
        for answer, (_, name, unit, factor) in zip(answers, METRICS, strict=True):
            if answer.nvmlReturn:
                self.failures[name] = from_code(answer.nvmlReturn)
            elif not math.isfinite(answer.value) or answer.value < 0:
                self.failures[name] = Failure(code=None, reason=f"the monitors gave {answer.value:g}; 0 or more can be")
            else:
                self.failures.pop(name, None)
                yield Datum(name, unit, answer.value * factor)
