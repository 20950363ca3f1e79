"""How does a frozen linear layer run fastest on the device at hand?

oneDNN can repack a weight matrix once, for the CPU it runs on; torch's plain call hands the same
matrix to another library on each call. The packed form was 2.1 to 2.3 times as fast for a whole
MiniLM pass on one thread of an AVX-512 AMD CPU, with the same results to 2e-7.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Linear(Protocol):
    """y = x W^T + b, alone or with what follows it in an encoder layer. Shared between threads."""

    def __call__(self, x: Tensor) -> Tensor:
        """The product alone."""

    def gelu(self, x: Tensor) -> Tensor:
        """The product, then the exact (erf) GELU."""

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product, plus a tensor of the same shape."""


class PlainLinear:
    """Torch's own call; right on every device."""

    __slots__ = ("_bias", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self._weight, self._bias)

    def gelu(self, x: Tensor) -> Tensor:
        """The product, then GELU, in two calls."""
        return functional.gelu(functional.linear(x, self._weight, self._bias))

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product, then the sum, in place."""
        return functional.linear(x, self._weight, self._bias).add_(residual)


class PackedLinear:
    """The weight in oneDNN's layout for this CPU, with the activation or the sum fused in."""

    __slots__ = ("_bias", "_fused", "_fused_with", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
        self._bias = bias
        self._fused = torch.ops.mkldnn._linear_pointwise.default
        self._fused_with = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = self._fused(x, self._weight, self._bias, "none", [], "")
        return result

    def gelu(self, x: Tensor) -> Tensor:
        """The product with GELU in one call."""
        result: Tensor = self._fused(x, self._weight, self._bias, "gelu", [], "none")
        return result

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product with the sum in one call."""
        result: Tensor = self._fused_with(x, residual, self._weight, self._bias, "add")
        return result


def fastest_linear(weight: Tensor, bias: Tensor) -> Linear:
    """The packed form where this build of torch and the weight's device have it, else the plain one."""
    if weight.device.type == "cpu" and weight.dtype is torch.float32 and can_pack():
        return PackedLinear(weight, bias)
    return PlainLinear(weight, bias)


def can_pack() -> bool:
    """Whether this build of torch has oneDNN and the operators that PackedLinear calls."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
