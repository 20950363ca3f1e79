"""Is a copy of the weights really copied, for as long as the device takes, and is its memory counted?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from perfkit.clock import RealClock
from perfkit.errors import ConfigError
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.preset import DEFAULT_PRESET, DeviceParts
from perfkit.serving.devices.weights import Size, WeightStore


class LeapClock(RealClock):
    """Whoever sleeps arrives at once: virtual time for a single thread."""

    def __init__(self):
        self.at_ns = 0

    def now_ns(self):
        return self.at_ns

    def sleep_until(self, until_ns):
        self.at_ns = max(self.at_ns, until_ns)


@dataclasses.dataclass
class Bytes:
    nbytes: int


def simulated(**parts):
    preset = dataclasses.replace(DEFAULT_PRESET, device=DeviceParts(**parts))
    return SimulatedDevice(preset, clock=LeapClock())


@pytest.mark.parametrize("make", [lambda: np.arange(6.0), lambda: torch.arange(6.0)], ids=["numpy", "torch"])
def test_on_the_hosts_processors_every_byte_is_copied_from_the_copys_own_memory(make):
    device, original = CpuDevice(), make()
    store = WeightStore(device, [original], Size(copies=3, slots=2))
    memories = {id(array) for copy in (*store._sources, *store._slots) for array in copy}
    assert (store.nbytes, len(memories)) == (original.nbytes, 5)
    store._sources[2][0][:] = -1
    store.fill(1, 2)
    assert [slot[0].tolist() for slot in store._slots] == [original.tolist(), [-1.0] * 6]


def test_on_the_simulated_device_a_load_takes_weights_over_bandwidth_from_pinned_memory():
    device = simulated(h2d_bytes_per_s=1e9, copy_latency_s=10e-6, weights_bytes=5_000_000)
    store = WeightStore(device, [Bytes(4_000_000), Bytes(1_000_000)], Size(copies=4, slots=2))
    store.fill(0, 3)
    assert device.clock.now_ns() == 5_010_000
    assert device.stats()["simulated_h2d_busy_s"] == 0.00501
    memory = device.memory()
    assert (memory.allocated_bytes, memory.pinned_bytes) == (10_000_000, 20_000_000)
    store.close()
    memory = device.memory()
    assert (memory.allocated_bytes, memory.pinned_bytes) == (5_000_000, 0)


def test_on_a_gpu_a_load_is_one_copy_from_pinned_memory_on_a_stream_of_its_own(gpu):
    from perfkit.serving.devices.cuda.device import CudaDevice

    device = CudaDevice(clock=gpu.clock)
    device.prepare(1)
    arrays = [torch.arange(6.0), torch.arange(3)]
    store = WeightStore(device, arrays, Size(copies=3, slots=2))
    before = gpu.calls.count("copy h2d")
    store.fill(0, 2)
    assert gpu.calls.count("copy h2d") == before + 1
    assert [tensor.is_cuda for slot in store._slots for tensor in slot] == [True] * 4
    assert [tensor.as_subclass(torch.Tensor).tolist() for tensor in store._slots[0]] == [list(range(6)), [0, 1, 2]]
    store.close()


def test_slots_that_do_not_fit_are_refused_and_leave_nothing_behind():
    device = simulated(memory_bytes=2_500, weights_bytes=1_000)
    with pytest.raises(OutOfDeviceMemory, match="1000 bytes asked for, 500 of 2500 are free"):
        WeightStore(device, [Bytes(1_000)], Size(copies=4, slots=3))
    assert (device.memory().allocated_bytes, device.memory().pinned_bytes) == (1_000, 0)


def test_a_model_without_weights_is_refused():
    with pytest.raises(ConfigError, match="the model's weights take 0 bytes"):
        WeightStore(CpuDevice(), [], Size(copies=2, slots=1))
