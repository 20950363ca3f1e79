"""What did the GPUs do while it was measured, and what did a request cost in energy?

From the series that the collectors wrote under `gpu:…`, over the measured windows. Utilisation says
that at least one kernel ran, never how full the GPU was: SM activity says that. Energy a request is
all that the GPU drew, its rest included, over the good replies, whoever else computed on it. A run on
the simulated device is described by that device alone, whatever real GPU lies idle beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.measuring.analysis.instants import relative_ns
from perfkit.measuring.analysis.series import counter_rate

if TYPE_CHECKING:
    import pandas as pd

    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

PREFIX = "gpu:"
SIMULATED = "gpu:simulated"
_OWN_DEVICE = "device:"
_GAUGES = (
    "gpu_util",
    "memory_util",
    "sm_active",
    "sm_occupancy",
    "tensor_active",
    "dram_active",
    "memory_used",
    "memory_total",
    "sm_clock",
    "throttle",
    "power",
)
# NVML's reference, nvmlClocksEventReasons: why a clock is where it is. Idle and a set clock are no throttling.
_THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GpuFigures:
    """One GPU over the measured windows: means, but `memory_used_bytes` is the most. None = not told."""

    gpu: str
    name: str
    simulated: bool
    gpu_util_ratio: float | None
    memory_util_ratio: float | None
    sm_active_ratio: float | None
    sm_occupancy_ratio: float | None
    tensor_active_ratio: float | None
    dram_active_ratio: float | None
    memory_used_bytes: float | None
    memory_total_bytes: float | None
    sm_clock_hz: float | None
    throttles: tuple[str, ...] | None
    power_w: float | None
    energy_per_request_j: float | None
    missing: Mapping[str, str]


def gpu_figures(run: RunData, measured: Measured) -> tuple[GpuFigures, ...]:
    """The figures of every GPU that was recorded, in the order of its UUID."""
    return tuple(_figures(run, measured, source) for source in gpu_sources(run.series["source"], run.simulated))


def gpu_sources(sources: pd.Series[Any], simulated: bool) -> list[str]:
    """The sources that are a whole GPU: the simulated one for a simulated run, else the real ones."""
    whole = {
        str(source) for source in sources.unique() if str(source).startswith(PREFIX) and ":pid:" not in str(source)
    }
    return sorted(source for source in whole if (source == SIMULATED) == simulated)


def _figures(run: RunData, measured: Measured, source: str) -> GpuFigures:
    facts = next((gpu for gpu in run.gpus if f"{PREFIX}{gpu['uuid']}" == source), {})
    values = {name: _inside(run, measured, source, name) for name in _GAUGES}
    history = _inside(run, measured, source, "gpu_util_history")
    return GpuFigures(
        gpu=source.removeprefix(PREFIX),
        name=str(facts.get("name", source.removeprefix(PREFIX))),
        simulated=source == SIMULATED,
        gpu_util_ratio=_mean(history if len(history) else values["gpu_util"]),
        memory_util_ratio=_mean(values["memory_util"]),
        sm_active_ratio=_activity(run, measured, source, values["sm_active"]),
        sm_occupancy_ratio=_mean(values["sm_occupancy"]),
        tensor_active_ratio=_mean(values["tensor_active"]),
        dram_active_ratio=_mean(values["dram_active"]),
        memory_used_bytes=_most(values["memory_used"]),
        memory_total_bytes=_most(values["memory_total"]),
        sm_clock_hz=_mean(values["sm_clock"]),
        throttles=throttle_names(values["throttle"]) if len(values["throttle"]) else None,
        power_w=_mean(values["power"]),
        energy_per_request_j=_energy_per_request(run, measured, source),
        missing=dict(facts.get("missing", {})),
    )


def _inside(run: RunData, measured: Measured, source: str, name: str) -> Floats:
    """The values of a gauge inside the measured windows."""
    is_it = (run.series["source"] == source) & (run.series["name"] == name) & (run.series["unit"] != "s")
    rows = run.series[is_it]
    times = relative_ns(rows, "time", run.started_ns)
    inside = np.zeros(len(times), dtype=bool)
    for window in measured.windows:
        inside |= (times >= window.start_ns) & (times <= window.end_ns)
    return rows["value"].to_numpy(dtype=np.float64)[inside]


def _activity(run: RunData, measured: Measured, source: str, shares: Floats) -> float | None:
    """Share of the multiprocessors that worked: as the monitors gave it, else from a counter of their time."""
    if len(shares):
        return _mean(shares)
    return counter_rate(run, measured.windows, source, "sm_active")


def _energy_per_request(run: RunData, measured: Measured, source: str) -> float | None:
    """Joules over good replies. None where the counter stood still, or the GPU only lay idle beside a CPU's work."""
    if not (source == SIMULATED or _may_compute_on_gpu(run)):
        return None
    watts = counter_rate(run, measured.windows, source, "energy")
    rate = measured.throughput_rps
    return watts / rate if watts and rate else None


def _may_compute_on_gpu(run: RunData) -> bool:
    """Whether the service does, or does not say: ours tells its device in series of their own."""
    own = [str(source) for source in run.series["source"].unique() if str(source).startswith(_OWN_DEVICE)]
    return not own or any(source.startswith(f"{_OWN_DEVICE}cuda") for source in own)


def throttle_names(masks: Sequence[float] | Floats) -> tuple[str, ...]:
    """The reasons that were given at least once, in the order of their bits."""
    seen = 0
    for mask in masks:
        seen |= int(mask)
    return tuple(name for bit, name in _THROTTLES.items() if seen & bit)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _most(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None
