"""A clock for one thread, and one rig per device for the contract suite."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import Device
from perfkit.serving.devices.simulated.device import SimulatedDevice


class LeapClock:
    """Whoever sleeps arrives at once: virtual time for a single thread."""

    def __init__(self) -> None:
        self.at_ns = 1_000

    def now_ns(self) -> int:
        return self.at_ns

    def wait(self, condition, until_ns):
        raise AssertionError("a device sleeps, it does not wait for a notice")

    def sleep_until(self, until_ns: int) -> None:
        self.at_ns = max(self.at_ns, until_ns)


@dataclass(frozen=True)
class Rig:
    """A device, a call that does some device work and returns its input, and outputs worth a copy."""

    device: Device
    call: Callable[[Any], Any]


@dataclass(frozen=True)
class Blob:
    """Data of a known size."""

    number: int
    nbytes: int = 1 << 20


def simulated_rig(clock=None) -> Rig:
    device = SimulatedDevice(clock=clock or LeapClock())

    def call(inputs):
        device.compute(0.002)
        return inputs

    return Rig(device, call)


def cpu_rig() -> Rig:
    def call(inputs):
        sum(range(2_000))
        return inputs

    return Rig(CpuDevice(), call)


@pytest.fixture
def leap_clock():
    return LeapClock()


@pytest.fixture
def blob():
    return Blob


@pytest.fixture(params=["simulated", "cpu"])
def rig(request):
    return {"simulated": simulated_rig, "cpu": cpu_rig}[request.param]()
