"""What does torch.compile gain, and how do several threads share it? Every shape is compiled before they start.

Dynamo and Inductor are not made for several threads at once, so that one thread calls every bucket in
advance, in the mode and with the thread limit in which workers will. Whatever would compile later is counted:
a run during which the count grew measured the compiler.

Each bucket has a function of its own. Dynamo keeps what it compiled for a function in a list and moves what was
found to its front while another thread may be searching it, which then finds nothing and compiles again: with
three shapes of one function and four threads that happened in 13 of 15 trials (torch 2.13), with a function for
each in none of 20.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import types
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import Module

from perfkit.errors import EnvironmentLacks
from perfkit.serving.execution.network import Arguments, Call, Network, Shapes, shapes_of


class Compiled:
    """One graph for each bucket. A graph that cannot be whole is an error: a part of it would run eagerly."""

    is_static = True
    settles_after = 1

    def __init__(self) -> None:
        self._calls: dict[tuple[int, Shapes], Call] = {}  # by the thread limit, which compiled code also depends on

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Compile for each example; raises EnvironmentLacks without a C++ compiler where the CPU needs one."""
        require_compiler(examples[0])
        with compiling(), torch.inference_mode():
            for example in examples:
                call = torch.compile(_own_function(module), dynamic=False, fullgraph=True)
                call(*(one.clone() for one in example))
                self._calls[torch.get_num_threads(), shapes_of(example)] = call

    def open(self) -> Call:
        """The compiled functions, which all threads share."""
        calls = self._calls

        def call(*arguments: Tensor) -> Tensor:
            with torch.inference_mode():
                return calls[torch.get_num_threads(), shapes_of(arguments)](*arguments)

        return call

    def graphs(self) -> int:
        """Graphs that this process has compiled; before the first, nothing of Dynamo is imported for that."""
        return 0 if not self._calls else int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def _own_function(module: Module) -> Call:
    """A function that calls the module, with code that no other function shares: Dynamo keeps its list by code."""

    def call(*arguments: Tensor) -> Tensor:
        outputs: Tensor = module(*arguments)
        return outputs

    return types.FunctionType(call.__code__.replace(), call.__globals__, closure=call.__closure__)


def require_compiler(example: Sequence[Tensor]) -> None:
    """Raises EnvironmentLacks unless there is what Inductor calls for the CPU: what CXX names, or g++."""
    wanted = os.environ.get("CXX", "g++")
    if example[0].device.type == "cpu" and shutil.which(wanted) is None:
        raise EnvironmentLacks(
            f"execution.level needs a C++ compiler, and {wanted} is not found; install one (apt-get install g++), "
            "name it in CXX, or set another level, such as inference_mode"
        )


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Without a pool of compiling processes, which would stay beside what is measured, and without torch's notes."""
    import torch._inductor.config

    with warnings.catch_warnings(), torch._inductor.config.patch(compile_threads=1):
        warnings.simplefilter("ignore")
        yield
