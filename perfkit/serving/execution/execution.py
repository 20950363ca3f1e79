"""How does a network come to run at a level, proven and warm before the first request?"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from perfkit.errors import EnvironmentLacks, PerfkitError
from perfkit.serving.execution import buckets, gate
from perfkit.serving.execution.aoti import AheadOfTime
from perfkit.serving.execution.compiled import Compiled
from perfkit.serving.execution.eager import Eager, InferenceMode
from perfkit.serving.execution.graph import CudaGraphs
from perfkit.serving.execution.jit import Jit, JitOptimized
from perfkit.serving.execution.level import Level
from perfkit.serving.execution.network import Arguments, Bucket, Call, Network
from perfkit.serving.execution.precision import in_dtype

_LEVELS: dict[str, Callable[[], Level]] = {
    "eager": Eager,
    "inference_mode": InferenceMode,
    "jit": Jit,
    "jit_optimized": JitOptimized,
    "compile": Compiled,
    "aoti": AheadOfTime,
    "cuda_graph": CudaGraphs,
}
_MOST_TEXT = 300  # characters of what torch says; a failed compilation says thousands
_log = logging.getLogger("perfkit.server")


@dataclasses.dataclass(frozen=True, slots=True)
class _Ready:
    """A bucket as it was prepared: compiled code also depends on the thread limit."""

    bucket: Bucket
    intra_op_threads: int


class Execution:
    """A network at one level, in one dtype. `get_ready` is for one thread at a time, `run` for any number."""

    def __init__(self, network: Network, level: str, dtype: str) -> None:
        self.network = network
        self.worst: gate.Difference | None = None  # of all buckets that were compared
        self.graphs_ready: int | None = None  # compiled when the latest bucket was ready
        self._names = (level, dtype)
        self._level = _LEVELS[level]()
        with torch.inference_mode(False):  # whose weights autograd could not use
            self._module = in_dtype(network.module.eval(), dtype)
        self._ready: set[_Ready] = set()
        self._mine = threading.local()  # .call, the thread's own way

    @property
    def is_static(self) -> bool:
        """Whether calls must have the shape of a bucket that is ready."""
        return self._level.is_static

    @property
    def graphs(self) -> int | None:
        """Graphs compiled so far; None where there are none to count."""
        return self._level.graphs()

    def shapes(self, most_rows: int, lengths: Sequence[int]) -> buckets.Grid:
        """The sizes and lengths that such calls are brought to, where the level needs it."""
        return buckets.Grid(buckets.sizes_up_to(most_rows), buckets.lengths_up_to(self.network.longest, lengths))

    def get_ready(self, shapes: buckets.Grid, intra_op_threads: int) -> None:
        """Prepare and compare what is not ready yet; the calling thread must be set up as workers are.

        Raises TargetFailed when the outputs are others than in eager float32, EnvironmentLacks when torch cannot
        run it here.
        """
        wanted = shapes.all() if self.is_static else shapes.few()
        new = [one for one in wanted if _Ready(one, intra_op_threads) not in self._ready]
        if new:
            self._prepare(new)
            self._ready.update(_Ready(one, intra_op_threads) for one in new)
            _log.info("execution.level %s in %s: %d buckets ready; %s", *self._names, len(self._ready), self.worst)

    def with_rows(self, arguments: Arguments, rows: int) -> Arguments:
        """The arguments with so many rows."""
        return buckets.with_rows(arguments, rows)

    def run(self, arguments: Arguments) -> Tensor:
        """One call, by the calling thread's own way, which its first call opens."""
        call: Call | None = getattr(self._mine, "call", None)
        if call is None:
            call = self._mine.call = self._level.open()
        return call(*arguments)

    def _prepare(self, new: Sequence[Bucket]) -> None:
        try:
            with torch.inference_mode():
                self._prove(new)
        except PerfkitError:
            raise
        except Exception as error:
            raise self._unable(error) from error
        finally:
            self.graphs_ready = self._level.graphs()

    def _prove(self, new: Sequence[Bucket]) -> None:
        device = next(self.network.module.parameters()).device
        examples = [tuple(one.to(device) for one in self.network.example(*bucket)) for bucket in new]
        self._level.prepare(self._module, self.network, examples)
        call = self._level.open()
        for bucket, example in zip(new, examples, strict=True):
            for _ in range(self._level.settles_after):
                outputs = call(*example)
            found = gate.compare(outputs, self.network.module(*example), bucket, self._names[1])
            gate.refuse_unless_allowed(*self._names, found)
            if self.worst is None or found.difference_ratio > self.worst.difference_ratio:
                self.worst = found

    def _unable(self, error: Exception) -> PerfkitError:
        level, dtype = self._names
        said = " ".join(str(error).split())[:_MOST_TEXT]
        return EnvironmentLacks(
            f"torch cannot run execution.level = {level} with execution.dtype = {dtype} here: "
            f"{type(error).__name__}: {said}; set another level or dtype, or execution.level = own"
        )

    def stats(self) -> dict[str, Any]:
        """What was compared and compiled."""
        return {
            "difference": None if self.worst is None else self.worst.to_json(),
            "graphs_ready": self.graphs_ready,
            "graphs": self.graphs,
        }
