"""Is there a GPU that torch can use, and how many hardware queues may its streams have?"""

from __future__ import annotations

import os

import torch

from perfkit.errors import EnvironmentLacks
from perfkit.settings.cuda import CudaSettings

CONNECTIONS_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"


def is_present(settings: CudaSettings) -> bool:
    """Whether torch finds a GPU. CUDA reads the number of queues once, so it is told before it is asked anything."""
    if settings.connections is not None:
        os.environ[CONNECTIONS_VARIABLE] = str(settings.connections)
    return torch.cuda.is_available()


def require_gpu(settings: CudaSettings) -> None:
    """Raises EnvironmentLacks when torch finds none."""
    if is_present(settings):
        return
    built = "is built without CUDA" if torch.version.cuda is None else "finds no GPU"
    raise EnvironmentLacks(
        f"device is cuda, and torch {torch.__version__} {built}; "
        "it takes an NVIDIA GPU, its driver (nvidia-smi shows both) and torch's build for CUDA; or set device = cpu"
    )
