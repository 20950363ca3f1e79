"""A simulated H200 for all tests, and the stand-in for torch.cuda of the device's own tests."""

import copy
import gc
import importlib
from pathlib import Path

import pytest

from perfkit.measuring.gpucheck.board_device import BoardDevice
from perfkit.measuring.gpucheck.simulated_bench import SimulatedBench

DEVICE_TESTS = Path(__file__).parents[2] / "serving" / "devices"


@pytest.fixture(scope="session")
def networks_bench():
    """Drawing the weights takes a while: once for all tests."""
    return SimulatedBench("h200")


@pytest.fixture
def bench(networks_bench):
    """On a device of its own, which a test may spoil."""
    fresh = copy.copy(networks_bench)
    fresh.device = BoardDevice(networks_bench.device.preset)
    return fresh


@pytest.fixture(scope="session")
def fake_cuda():
    """The package that stands in for torch.cuda."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEVICE_TESTS))
        yield importlib.import_module("fake_cuda")


@pytest.fixture
def gpu(fake_cuda):
    """A stand-in for a GPU in torch's place, on which no rule may be broken."""
    fake = fake_cuda.FakeCuda()
    with fake_cuda.install(fake):
        yield fake
        gc.collect()
    assert fake.broken == []
