"""What does an error of CUDA mean: no memory for this call, a device that is gone, or only the model's own mistake?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from perfkit.serving.devices.device import DeviceLost, OutOfDeviceMemory

Result = TypeVar("Result")

# Torch has an exception of its own for the caching allocator only; pinned memory and cuBLAS say it in words.
_OUT_OF_MEMORY = ("out of memory", "ALLOC_FAILED")


def guarded(stream: Any, work: Callable[[], Result]) -> Result:
    """Do device work on a stream; raises OutOfDeviceMemory, DeviceLost, or what the work raises.

    What failed work has left on the stream is seen done first, since nobody holds its memory any more.
    """
    failure: BaseException | None = None
    try:
        return work()
    except BaseException as error:
        failure = error
    # Outside of `except`, where the error's frames would hold the memory of the call that failed.
    try:
        raise _translated(failure, stream)
    finally:
        failure = None  # or this frame and the error would hold each other, and the memory with them


def _translated(error: BaseException, stream: Any) -> BaseException:
    if isinstance(error, (DeviceLost, OutOfDeviceMemory)):
        return error
    try:
        stream.synchronize()
    except RuntimeError as lost:  # an error that stays: every further call in this process would meet it
        return DeviceLost(f"the CUDA device is lost: {lost}")
    if not isinstance(error, RuntimeError):
        return error
    if isinstance(error, torch.OutOfMemoryError) or any(word in str(error) for word in _OUT_OF_MEMORY):
        return OutOfDeviceMemory(f"the GPU has not got the memory for this call: {error}")
    return error
