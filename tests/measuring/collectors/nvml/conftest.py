"""The real binding over the stub of the driver's library, in this process."""

import ctypes

import pynvml
import pytest


@pytest.fixture
def over(monkeypatch):
    """A function that puts the real binding over a built stub; the stub's library has no name to be found by."""
    libraries = []

    def load(folder):
        library = ctypes.CDLL(str(folder / "libnvidia-ml.so.1"))
        libraries.append(library)
        library.stub_reset()
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        return pynvml

    return load


@pytest.fixture
def nvml(over, nvml_folder):
    """The binding over the whole stub."""
    return over(nvml_folder)


@pytest.fixture
def plan(monkeypatch):
    """A function that sets what the stub answers: plan(FAIL="nvmlDeviceGetPowerUsage=3", MIG=1)."""

    def write(**words):
        for word, value in words.items():
            monkeypatch.setenv(f"NVML_STUB_{word}", str(value))

    return write
