"""What did TorchScript gain? The network traced and frozen, as it was served before torch.compile.

Legacy: torch has deprecated it since 2.10 and names Python 3.14 as its end. Freezing comes before
`optimize_for_inference`; the other way round, as often published, it raises an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import Module

from perfkit.serving.execution.eager import in_inference_mode
from perfkit.serving.execution.network import Arguments, Call, Network


class Jit:
    """Trace and freeze. A traced graph takes any shape; the gate proves that it did not keep the example's."""

    is_static = False
    settles_after = 3  # the first two calls of a shape are profiled and optimised

    _script: Any = None

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Trace once."""
        if self._script is not None:
            return
        with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            warnings.simplefilter("ignore", DeprecationWarning)
            example = tuple(one.clone() for one in examples[-1])
            traced = torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
            self._script = self._optimised(torch.jit.freeze(traced))

    def open(self) -> Call:
        """The graph, which all threads share."""
        return in_inference_mode(self._script)

    def graphs(self) -> None:
        """It has one, and never another."""

    def _optimised(self, frozen: Any) -> Any:
        return frozen


class JitOptimized(Jit):
    """Trace, freeze, then torch's list of fusions for inference."""

    def _optimised(self, frozen: Any) -> Any:
        return torch.jit.optimize_for_inference(frozen)
