"""What does a network cost that runs without Python? AOTInductor makes a library of it, and each worker loads one.

One library takes every shape. It checks none: for one that it was not exported for it would read beyond its inputs.
Its runner serves one caller at a time, so that workers that shared one would wait for each other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from perfkit.serving.execution.compiled import compiling, require_compiler
from perfkit.serving.execution.eager import in_inference_mode
from perfkit.serving.execution.network import Arguments, Call, Network

_MOST_ROWS = 1024  # what batch.max_size takes at most


class AheadOfTime:
    """One package for the process, made once, and loaded again by each worker."""

    is_static = False
    settles_after = 1

    _package: str | None = None

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Export and compile; raises EnvironmentLacks without a C++ compiler where the CPU needs one."""
        if self._package is not None:
            return
        require_compiler(examples[0])
        self._folder = tempfile.TemporaryDirectory(prefix="perfkit-aoti-")
        path = str(Path(self._folder.name) / "network.pt2")
        with compiling(), torch.inference_mode(False), torch.no_grad():
            exported = _export(module, network, examples[0][0].device)
            self._package = torch._inductor.aoti_compile_and_package(exported, package_path=path)

    def open(self) -> Call:
        """A runner of the calling thread's own. The package is the one made above, never a file of somebody's."""
        assert self._package is not None, "prepare comes first"
        return in_inference_mode(torch._inductor.aoti_load_package(self._package))

    def graphs(self) -> None:
        """It has one, and never another."""


def _export(module: Module, network: Network, device: torch.device) -> Any:
    """The module for any number of rows of any length: what differs between three examples is what may vary."""
    longest = network.longest
    short = (longest + 1) // 2  # unlike the longest, or lengths would look as if they could not vary
    example = tuple(one.clone().to(device) for one in network.example(2, short))
    taller, longer = network.example(3, short), network.example(2, longest)
    size = torch.export.Dim("size", min=1, max=_MOST_ROWS)
    length = torch.export.Dim("length", min=1, max=max(2, longest))  # of no dimension where rows have one length
    shapes: Any = torch.export.ShapesCollection()  # type: ignore[no-untyped-call]
    for one, tall, long in zip(example, taller, longer, strict=True):
        dims = {dim: size for dim in range(one.dim()) if one.shape[dim] != tall.shape[dim]}
        dims |= {dim: length for dim in range(one.dim()) if one.shape[dim] != long.shape[dim]}
        shapes[one] = dims
    return torch.export.export(module, example, dynamic_shapes=shapes)
