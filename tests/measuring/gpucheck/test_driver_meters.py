"""Do the check's meters read the real binding, and does a silent driver give a reason instead of a figure?"""

import ctypes

import pynvml
import pytest

from perfkit.clock import REAL_CLOCK
from perfkit.measuring.gpucheck.bench import Board, Monitors
from perfkit.measuring.gpucheck.driver_meters import Meters

FIRST_UUID = "00000000-0000-0000-0000-000000000007"  # of the stub, as torch gives it


@pytest.fixture
def plan(nvml_folder, monkeypatch):
    """The real binding over the stub of the driver's library; a function sets what the stub answers."""
    library = ctypes.CDLL(str(nvml_folder / "libnvidia-ml.so.1"))
    library.stub_reset()
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return lambda **words: [monkeypatch.setenv(f"NVML_STUB_{word}", str(value)) for word, value in words.items()]


def test_the_meters_are_the_drivers(plan):
    meters = Meters(FIRST_UUID, REAL_CLOCK)
    assert (meters.missing, meters.driver) == ("", "580.00.stub")
    assert meters.board() == Board(gpu_util_ratio=0.9, sm_clock_hz=1.98e9, throttle_mask=4)
    assert meters.monitors(0.11) == Monitors(sm_active_ratio=0.02, sm_occupancy_ratio=0.03)


def test_each_gap_has_its_reason(plan):
    plan(FAIL="nvmlDeviceGetClockInfo=3,nvmlGpmSampleGet=3")
    meters = Meters(None, REAL_CLOCK)
    board, monitors = meters.board(), meters.monitors(0.11)
    assert (board.sm_clock_hz, monitors.sm_active_ratio) == (None, None)
    assert board.gpu_util_ratio is not None
    assert "NVML 3" in board.missing
    assert "NVML 3" in monitors.missing


def test_a_driver_that_shows_another_gpu_is_not_read(plan):
    meters = Meters("00000000-0000-0000-0000-0000000000ff", REAL_CLOCK)
    assert meters.board().gpu_util_ratio is None
    assert "CUDA's UUID" in meters.board().missing
    assert "CUDA's UUID" in meters.monitors(0.11).missing


def test_without_the_library_the_reason_is_told(plan):
    plan(FAIL="nvmlInitWithFlags=9")
    assert "the driver is not loaded" in Meters(FIRST_UUID, REAL_CLOCK).board().missing
