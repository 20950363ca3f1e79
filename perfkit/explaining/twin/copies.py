"""How fast does a device copy, and what does a small copy cost at least?

Each way is timed by the device's own events, on one stream. Two sizes give a line: the fixed part and the bytes a
second. Only devices with copies have any of it.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any, NamedTuple

import numpy as np

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.device import Buffer, Device, Span

_SMALL_BYTES, _LARGE_BYTES = 4 << 10, 16 << 20  # a small batch of texts; large enough to be bound by the bus
_TIMES = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CopyRates:
    """Bandwidths in bytes a second, and the fixed part of a copy from pinned memory in seconds."""

    h2d_bytes_per_s: float
    d2h_bytes_per_s: float
    pageable_bytes_per_s: float
    copy_latency_s: float


class _Line(NamedTuple):
    latency_s: float
    bytes_per_s: float


class _Times(NamedTuple):
    in_s: float
    out_s: float


def measure_copies(device: Device) -> CopyRates:
    """Time small and large copies both ways; raises what the device raises."""
    device.prepare(1)
    device.enter_worker(1)
    pinned = device.buffer(_LARGE_BYTES, is_pinned=True)
    try:
        small, large = (_median_times(device, nbytes, pinned) for nbytes in (_SMALL_BYTES, _LARGE_BYTES))
        pageable = _line(*(_median_times(device, nbytes, None).in_s for nbytes in (_SMALL_BYTES, _LARGE_BYTES)))
    finally:
        device.free(pinned)
        device.leave_worker()
    staged = _line(small.in_s, large.in_s)
    return CopyRates(
        h2d_bytes_per_s=staged.bytes_per_s,
        d2h_bytes_per_s=_line(small.out_s, large.out_s).bytes_per_s,
        pageable_bytes_per_s=pageable.bytes_per_s,
        copy_latency_s=staged.latency_s,
    )


def _line(small_s: float, large_s: float) -> _Line:
    bytes_per_s = (_LARGE_BYTES - _SMALL_BYTES) / max(large_s - small_s, 1e-9)
    return _Line(latency_s=max(0.0, small_s - _SMALL_BYTES / bytes_per_s), bytes_per_s=bytes_per_s)


def _median_times(device: Device, nbytes: int, staging: Buffer | None) -> _Times:
    stream, data = device.stream(), _payload(device, nbytes)
    inwards, outwards = (Span(device.event(), device.event()) for _ in range(2))
    times_ns = []
    for _ in range(_TIMES):
        copied = device.copy_in(data, nbytes, stream, inwards, staging)
        device.synchronize(inwards.ended)
        device.copy_out(copied, stream, outwards)
        device.synchronize(outwards.ended)
        times_ns.append([device.elapsed_ns(span.started, span.ended) for span in (inwards, outwards)])
    ins_ns, outs_ns = zip(*times_ns, strict=True)
    return _Times(statistics.median(ins_ns) / NS_PER_S, statistics.median(outs_ns) / NS_PER_S)


def _payload(device: Device, nbytes: int) -> Any:
    """Bytes as the device takes them: a real one copies tensors only."""
    data = np.zeros(nbytes, dtype=np.uint8)
    if device.is_simulated:
        return data
    import torch

    return torch.from_numpy(data)
