"""What can one ask a GPU's driver, in which ways, and in which unit does perfkit keep the answer?

A *field* is asked as a whole and is available or not as a whole. It may have several ways, the best
first: an old driver lacks the newer ones. A way gives data, or raises whatever the binding raises.

Data of every GPU, gauges unless said otherwise: `gpu_util`, `memory_util` (ratio of the last window
in which at least one kernel ran, or memory was moved; never how full the GPU is), `memory_used`,
`memory_reserved`, `memory_total` (bytes), `sm_clock`, `memory_clock` (Hz), `throttle` (bit mask),
`power`, `power_instant` (W), `energy` (J, a counter), `temperature` (°C), `pcie_tx`, `pcie_rx`
(bytes, counters), or where there are no counters `pcie_tx_rate`, `pcie_rx_rate` (bytes/s over 20 ms),
`processes` (count), and of each process `pid:N` its `memory_used`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from perfkit.measuring.collectors.nvml.failure import Nonsense

Nvml = Any
"""The binding's module, `pynvml`: it has no types of its own."""
Handle = Any

_PERCENT = 100.0
_ABSENT = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)  # the driver's marks for "not available", in its two widths
_HZ_PER_MHZ = 1_000_000.0
_BYTES_PER_KB = 1_000.0  # judgement: NVML's reference says KB and gives no definition
_MILLI = 1_000.0
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class Datum(NamedTuple):
    """One value. `part` is what of the GPU it belongs to, `time_ns` its own instant where the driver gave one."""

    name: str
    unit: str
    value: float
    part: str = ""
    time_ns: int | None = None


Way = Callable[[Nvml, Handle], list[Datum]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A question to the driver. `is_slow` ones are asked once a second; `has_mig` says whether MIG leaves it intact."""

    name: str
    ways: tuple[Way, ...]
    is_slow: bool = False
    has_mig: bool = True


def ratio(percent: float) -> float:
    """Per cent as a ratio; raises Nonsense outside 0 to 100."""
    if not 0 <= percent <= _PERCENT:
        raise Nonsense(f"the driver gave {percent:g} per cent; only 0 to 100 can be")
    return percent / _PERCENT


def known(value: float) -> float:
    """A value that is none of the driver's marks for "not available"; raises Nonsense for one that is."""
    if value in _ABSENT:
        raise Nonsense("the driver gave its mark for a value that is not available")
    return float(value)


def utilisation(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Shares of the driver's last window (a sixth of a second to a second)."""
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return [Datum("gpu_util", "ratio", ratio(rates.gpu)), Datum("memory_util", "ratio", ratio(rates.memory))]


def memory(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Bytes that processes hold, what the driver keeps for itself, and all there are."""
    found = nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2)
    return [*_memory(found), Datum("memory_reserved", "bytes", known(found.reserved))]


def memory_without_reserved(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """As an older driver tells it: what it keeps for itself is part of what is used."""
    return _memory(nvml.nvmlDeviceGetMemoryInfo(gpu))


def _memory(found: Any) -> list[Datum]:
    if found.total == 0:
        raise Nonsense("the driver says that the GPU has 0 bytes of memory")
    return [Datum("memory_used", "bytes", known(found.used)), Datum("memory_total", "bytes", known(found.total))]


def sm_clock(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Clock of the multiprocessors."""
    return [Datum("sm_clock", "Hz", known(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)) * _HZ_PER_MHZ)]


def memory_clock(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Clock of the memory."""
    return [Datum("memory_clock", "Hz", known(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)) * _HZ_PER_MHZ)]


def throttle(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Why the clock is where it is, as a bit mask."""
    return [Datum("throttle", "mask", float(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)))]


def throttle_by_its_old_name(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """The same bits from a driver before 535."""
    return [Datum("throttle", "mask", float(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)))]


def power(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Power drawn; on GPUs since Ampere the mean of the last second."""
    return [Datum("power", "W", known(nvml.nvmlDeviceGetPowerUsage(gpu)) / _MILLI)]


def power_instant(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Power at this instant."""
    milliwatts = _field_values(nvml, gpu, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
    return [Datum("power_instant", "W", milliwatts / _MILLI)]


def energy(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Energy since the driver was loaded."""
    return [Datum("energy", "J", known(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)) / _MILLI)]


def temperature(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Temperature of the die."""
    return [Datum("temperature", "°C", known(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)))]


def pcie(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Bytes over the bus since the driver was loaded: cheap, and nothing falls between two looks."""
    wanted = [nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES]
    sent, received = _field_values(nvml, gpu, wanted)
    return [Datum("pcie_tx", "bytes", sent), Datum("pcie_rx", "bytes", received)]


def pcie_rates(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Traffic over the bus in the last 20 ms; each of the two calls takes as long."""
    sent = nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES)
    received = nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES)
    rates = (("pcie_tx_rate", sent), ("pcie_rx_rate", received))
    return [Datum(name, "bytes/s", known(kilobytes) * _BYTES_PER_KB) for name, kilobytes in rates]


def processes(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """Processes with a compute context, by the id that the driver knows: inside a container that may be the host's."""
    return _processes(nvml.nvmlDeviceGetComputeRunningProcesses(gpu))


def processes_by_their_old_name(nvml: Nvml, gpu: Handle) -> list[Datum]:
    """The same from a driver before 510."""
    return _processes(nvml.nvmlDeviceGetComputeRunningProcesses_v2(gpu))


def _processes(found: list[Any]) -> list[Datum]:
    told = [process for process in found if process.usedGpuMemory is not None]  # None where the driver does not say
    memories = [Datum("memory_used", "bytes", float(one.usedGpuMemory), part=f"pid:{one.pid}") for one in told]
    return [Datum("processes", "count", float(len(found))), *memories]


def _field_values(nvml: Nvml, gpu: Handle, wanted: list[int]) -> list[float]:
    """Values of numbered fields; each has a return value of its own, the first that failed is raised."""
    found = nvml.nvmlDeviceGetFieldValues(gpu, wanted)
    for one in found:
        if one.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(one.nvmlReturn)
    return [known(number(one.valueType, one.value)) for one in found]


def number(kind: int, value: Any) -> float:
    """The member of NVML's union that its type names; raises Nonsense for a type that is not known."""
    if not 0 <= kind < len(_VALUE_MEMBERS):
        raise Nonsense(f"the driver gave a value of type {kind}, which this binding does not know")
    return float(getattr(value, _VALUE_MEMBERS[kind]))


FIELDS = (
    Field(name="utilisation", ways=(utilisation,), has_mig=False),
    Field(name="memory", ways=(memory, memory_without_reserved)),
    Field(name="sm_clock", ways=(sm_clock,)),
    Field(name="memory_clock", ways=(memory_clock,)),
    Field(name="throttle", ways=(throttle, throttle_by_its_old_name)),
    Field(name="power", ways=(power,)),
    Field(name="power_instant", ways=(power_instant,)),
    Field(name="energy", ways=(energy,)),
    Field(name="temperature", ways=(temperature,), is_slow=True),
    Field(name="pcie", ways=(pcie, pcie_rates), is_slow=True),
    Field(name="processes", ways=(processes, processes_by_their_old_name), is_slow=True),
)
"""The fields without a memory of their own; `history` and `gpm` have the others."""
