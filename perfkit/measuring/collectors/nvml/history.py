"""What has the driver noted on its own between two looks: utilisation, of the GPU and of each process?

The driver keeps a short buffer of samples with its own stamps; asked once a second it hands over
those it has gathered since, so that nothing falls between two looks. Its stamps are microseconds of
the calendar's clock; they are placed on the host's monotonic clock by the present difference of the two.
A stamp that is far from now belongs to another clock (a microVM's host): then the look's own time counts.

Data: `gpu_util_history`, `memory_util_history` (ratio); of each process `pid:N` its `sm_util`, `memory_util`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perfkit.clock import NS_PER_S, Clock
from perfkit.measuring.collectors.nvml.failure import NOT_FOUND
from perfkit.measuring.collectors.nvml.fields import Datum, Handle, Nvml, number, ratio

_NS_PER_US = 1_000
_FAR_NS = 60 * NS_PER_S  # judgement: no driver keeps samples for that long


class _Stamps:
    """The driver's stamps on the host's clock, and up to which one everything has been read."""

    def __init__(self, clock: Clock, epoch_ns: Callable[[], int]) -> None:
        self._clock = clock
        self._epoch_ns = epoch_ns
        self.last_us = epoch_ns() // _NS_PER_US  # what the driver has noted before is not ours

    def place(self, stamp_us: int) -> int | None:
        """A stamp on the monotonic clock; None when it belongs to another clock."""
        self.last_us = max(self.last_us, stamp_us)
        age_ns = self._epoch_ns() - stamp_us * _NS_PER_US
        return self._clock.now_ns() - age_ns if abs(age_ns) < _FAR_NS else None


class UtilisationHistory:
    """The driver's buffers of the GPU's utilisation. Used by one thread."""

    def __init__(self, clock: Clock, epoch_ns: Callable[[], int]) -> None:
        self._buffers = {name: _Stamps(clock, epoch_ns) for name in ("gpu_util_history", "memory_util_history")}

    def __call__(self, nvml: Nvml, gpu: Handle) -> list[Datum]:
        """What is new in either buffer."""
        kinds = (nvml.NVML_GPU_UTILIZATION_SAMPLES, nvml.NVML_MEMORY_UTILIZATION_SAMPLES)
        return [
            datum
            for (name, stamps), kind in zip(self._buffers.items(), kinds, strict=True)
            for datum in _new(nvml, gpu, kind, name, stamps)
        ]


def _new(nvml: Nvml, gpu: Handle, kind: int, name: str, stamps: _Stamps) -> list[Datum]:
    found = _unless_empty(nvml, lambda: nvml.nvmlDeviceGetSamples(gpu, kind, stamps.last_us))
    value_type, samples = found or (0, [])
    return [
        Datum(name, "ratio", ratio(number(value_type, sample.sampleValue)), time_ns=stamps.place(sample.timeStamp))
        for sample in samples
    ]


class ProcessUtilisation:
    """The driver's buffer of what each process keeps busy. Used by one thread."""

    def __init__(self, clock: Clock, epoch_ns: Callable[[], int]) -> None:
        self._stamps = _Stamps(clock, epoch_ns)

    def __call__(self, nvml: Nvml, gpu: Handle) -> list[Datum]:
        """What is new; an idle process leaves no sample."""
        last_us = self._stamps.last_us
        samples = _unless_empty(nvml, lambda: nvml.nvmlDeviceGetProcessUtilization(gpu, last_us)) or []
        return [datum for sample in samples for datum in self._data(sample)]

    def _data(self, sample: Any) -> list[Datum]:
        if sample.pid == 0 and sample.timeStamp == 0:  # the binding hands over the unused end of its buffer too
            return []
        part, time_ns = f"pid:{sample.pid}", self._stamps.place(sample.timeStamp)
        return [
            Datum("sm_util", "ratio", ratio(sample.smUtil), part, time_ns),
            Datum("memory_util", "ratio", ratio(sample.memUtil), part, time_ns),
        ]


def _unless_empty(nvml: Nvml, call: Callable[[], Any]) -> Any:
    """What a call gives; None when there is nothing new, which NVML reports as an error of its own."""
    try:
        return call()
    except nvml.NVMLError as error:
        if error.value != NOT_FOUND:
            raise
        return None
