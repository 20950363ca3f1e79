"""Which GPUs does the driver's library show, and where there are none, why?

A GPU is known by its UUID. NVML and CUDA number GPUs differently, and CUDA_VISIBLE_DEVICES hides
some from CUDA alone, so an index of the one says nothing about the other.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.nvml.failure import LIBRARY_NOT_FOUND, Failure, attempt, from_code
from perfkit.measuring.collectors.nvml.fields import Handle, Nvml
from perfkit.measuring.collectors.proc import read_text

LIBRARY = "libnvidia-ml.so.1"
_MIG_ON = 1
_GVISOR_BUILD = "sun jan 10 15:06:54 pst 2016"  # gVisor gives this date of its kernel, whichever release it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as the driver shows it. `uuid` is `index:N` where the driver does not tell it."""

    index: int
    uuid: str
    name: str
    is_mig: bool
    handle: Handle


def missing_library(environment: dict[str, str]) -> str | None:
    """Why a child started with this environment would find no NVML; None when it would. Starts nothing."""
    if importlib.util.find_spec("pynvml") is None:
        return "the Python package nvidia-ml-py is not installed; install it to record the GPU"
    places = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any((Path(place) / LIBRARY).exists() for place in places if place):
        return None  # where a child's loader looks first; ours read the variable when this process began
    if isinstance(attempt(lambda: ctypes.CDLL(LIBRARY)), Failure):
        return from_code(LIBRARY_NOT_FOUND).reason + surroundings()
    return None


def open_library() -> Nvml:
    """The binding, initialised; raises CollectorUnavailable with the reason."""
    import pynvml

    found = attempt(pynvml.nvmlInit)
    if isinstance(found, Failure):
        raise CollectorUnavailable(found.reason + surroundings())
    return pynvml


def close_library(nvml: Nvml) -> None:
    """Give the library back, whatever state it is in."""
    attempt(nvml.nvmlShutdown)


def list_gpus(nvml: Nvml) -> list[Gpu]:
    """Every GPU that answers; raises CollectorUnavailable when none does."""
    count = attempt(nvml.nvmlDeviceGetCount)
    if isinstance(count, Failure):
        raise CollectorUnavailable(f"the driver does not say how many GPUs there are: {count.reason}")
    handles = [attempt(partial(nvml.nvmlDeviceGetHandleByIndex, at)) for at in range(count)]
    gpus = [_describe(nvml, at, handle) for at, handle in enumerate(handles) if not isinstance(handle, Failure)]
    if gpus:
        return gpus
    refused = next((handle.reason for handle in handles if isinstance(handle, Failure)), None)
    raise CollectorUnavailable(f"no GPU answers: {refused}" if refused else "the driver is there, but shows no GPU")


def _describe(nvml: Nvml, index: int, handle: Handle) -> Gpu:
    uuid = attempt(lambda: nvml.nvmlDeviceGetUUID(handle))
    name = attempt(lambda: nvml.nvmlDeviceGetName(handle))
    mig = attempt(lambda: nvml.nvmlDeviceGetMigMode(handle))
    return Gpu(
        index=index,
        uuid=f"index:{index}" if isinstance(uuid, Failure) else _text(uuid),
        name="GPU" if isinstance(name, Failure) else _text(name),
        is_mig=not isinstance(mig, Failure) and mig[0] == _MIG_ON,
        handle=handle,
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def find_gpu(gpus: Iterable[Gpu], uuid: str) -> Gpu | None:
    """The GPU that CUDA knows by a UUID, with or without NVML's prefix; None when the driver shows no such."""
    wanted = _bare(uuid)
    return next((gpu for gpu in gpus if _bare(gpu.uuid) == wanted), None)


def _bare(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def driver_version(nvml: Nvml) -> str | None:
    """The driver's version, where it is told."""
    found = attempt(nvml.nvmlSystemGetDriverVersion)
    return None if isinstance(found, Failure) else _text(found)


def surroundings(root: Path = Path("/")) -> str:
    """What is known to give less than a plain host does, as the end of a sentence; empty for a plain host."""
    version = (read_text(root / "proc/version") or "").lower()
    if "microsoft" in version:
        return "; this is WSL, where the library lies in /usr/lib/wsl/lib and tells less than elsewhere"
    if (root / "etc/nv_tegra_release").exists():
        return "; this is a Jetson, whose NVML tells little (tegrastats knows more)"
    if _GVISOR_BUILD in version:
        return "; this is gVisor, which passes only some of the driver's calls on"
    return ""
