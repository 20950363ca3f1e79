"""How does a float32 network compute in a narrower type? Weights and inputs are cast, and the outputs cast back."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn import Module

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Narrowed(Module):
    """A copy of a module with weights and inputs in another type; whole numbers stay what they are."""

    def __init__(self, module: Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).to(dtype)
        self.dtype = dtype

    def forward(self, *arguments: Tensor) -> Tensor:
        """The module's outputs, in float32."""
        narrow = [one.to(self.dtype) if one.is_floating_point() else one for one in arguments]
        outputs: Tensor = self.module(*narrow).to(torch.float32)
        return outputs


def in_dtype(module: Module, dtype: str) -> Module:
    """The module itself for float32, else a narrowed copy."""
    return module if dtype == "float32" else Narrowed(module, DTYPES[dtype]).eval()
