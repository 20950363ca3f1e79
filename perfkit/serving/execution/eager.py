"""How does torch run a network as it is written, operator by operator?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Module

from perfkit.serving.execution.network import Arguments, Call, Network


class InferenceMode:
    """As it should be served: nothing is recorded for a backward pass, and no view is tracked."""

    is_static = False
    settles_after = 1

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Nothing is made."""
        self._module = module

    def open(self) -> Call:
        """The module, in inference mode."""
        return in_inference_mode(self._module)

    def graphs(self) -> None:
        """None are compiled."""


class Eager(InferenceMode):
    """As a script runs it that has forgotten about autograd: every call is recorded for a backward pass."""

    def open(self) -> Call:
        """The module, with gradients on; the worker is in inference mode, whose tensors autograd cannot keep."""
        module = self._module

        def call(*arguments: Tensor) -> Tensor:
            with torch.inference_mode(False), torch.enable_grad():
                own = [one.clone() if one.is_inference() else one for one in arguments]
                outputs: Tensor = module(*own).detach()
                return outputs

        return call


def in_inference_mode(call: Call) -> Call:
    """The same call, whatever mode the thread is in."""

    def in_mode(*arguments: Tensor) -> Tensor:
        with torch.inference_mode():
            return call(*arguments)

    return in_mode
