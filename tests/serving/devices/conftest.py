"""A clock for one thread, and one rig per device for the contract suite."""

import gc
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from perfkit.clock import REAL_CLOCK
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
class Blob:
    """Data of a known size."""

    number: int
    nbytes: int = 1 << 20


def same(blob):
    return blob


@dataclass(frozen=True)
class Rig:
    """A device, a call that does some device work and returns its input, and data worth a copy.

    `blob` makes data of a number, `there` takes them to where the device has its outputs, and `number` tells the
    number of data anywhere. By `error_ns` host instants of the device may be off.
    """

    device: Device
    call: Callable[[Any], Any]
    blob: Callable[..., Any] = Blob
    there: Callable[[Any], Any] = same
    number: Callable[[Any], int] = lambda blob: blob.number
    error_ns: Callable[[], int] = lambda: 0


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


def tensor_blob(number, nbytes=1 << 20):
    return torch.full((nbytes,), number, dtype=torch.uint8)


def cuda_rig(read, clock=REAL_CLOCK) -> Rig:
    """On whatever torch.cuda is at present: a real GPU, or the stand-in."""
    from perfkit.serving.devices.cuda.device import CudaDevice

    device = CudaDevice(clock=clock)
    device.prepare(1)

    def call(inputs):
        torch.cuda._sleep(4_000_000)
        return inputs

    def error_ns():
        return round(device.stats()["device_clock_error_s"] * 6e9)  # six instants, each off by so much

    return Rig(device, call, tensor_blob, device.place, lambda blob: int(read(blob)[0]), error_ns)


@pytest.fixture(scope="session")
def fake_cuda():
    """The package that stands in for torch.cuda."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield importlib.import_module("fake_cuda")


@pytest.fixture
def bare_gpu(fake_cuda):
    """A stand-in for a GPU in torch's place, for tests that break its rules."""
    fake = fake_cuda.FakeCuda(LeapClock())
    with fake_cuda.install(fake):
        yield fake


@pytest.fixture
def gpu(bare_gpu):
    """A stand-in for a GPU, no rule of which may have been broken when the test ends."""
    yield bare_gpu
    gc.collect()
    assert bare_gpu.broken == []


def fake_rig(request) -> Rig:
    gpu = request.getfixturevalue("gpu")
    return cuda_rig(lambda blob: blob.as_subclass(torch.Tensor), gpu.clock)


def real_rig(request) -> Rig:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return cuda_rig(lambda blob: blob.cpu())


RIGS = {
    "simulated": lambda request: simulated_rig(),
    "cpu": lambda request: cpu_rig(),
    "cuda-on-the-fake": fake_rig,
    "cuda": real_rig,
}


@pytest.fixture
def leap_clock():
    return LeapClock()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.gpu if name == "cuda" else ()) for name in RIGS])
def rig(request):
    rig = RIGS[request.param](request)
    yield rig
    rig.device.leave_worker()  # a call without a lane sets the calling thread up too
