"""What does launching cost? A CUDA graph replays a whole network with one launch.

Only one replay of a graph runs at a time and its buffers are fixed, so that each worker captures its own, one
for every bucket, on its own stream. Under one lock, and in the mode thread_local: in torch's usual mode a CUDA
call of any other thread would spoil the capture.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from perfkit.serving.execution.network import Arguments, Call, Network, Shapes, shapes_of

_WARM_UP_CALLS = 3  # before a capture: libraries choose their kernels and workspaces in the first calls
_capturing = threading.Lock()  # guards that one thread captures at a time


class CudaGraphs:
    """Graphs of one worker each. `open` captures on the calling thread's current stream, its own."""

    is_static = True
    settles_after = 1

    def __init__(self) -> None:
        self._examples: dict[Shapes, Arguments] = {}

    def prepare(self, module: Module, network: Network, examples: Sequence[Arguments]) -> None:
        """Nothing is shared but the weights."""
        self._module = module
        self._examples |= {shapes_of(example): example for example in examples}

    def open(self) -> Call:
        """Replays of graphs that are the calling thread's own, one for each bucket."""
        graphs: dict[Shapes, _Captured] = {}
        for shapes in self._examples:
            graphs[shapes] = self._capture(shapes)

        def call(*arguments: Tensor) -> Tensor:
            shapes = shapes_of(arguments)
            if shapes not in graphs:  # prepared after this thread had opened
                graphs[shapes] = self._capture(shapes)
            with torch.inference_mode():
                return graphs[shapes].replay(arguments)

        return call

    def _capture(self, shapes: Shapes) -> _Captured:
        example = self._examples[shapes]
        with _capturing, torch.cuda.stream(_stream_to_capture_on()), torch.inference_mode():
            gc.collect()  # nothing may be freed on the device while a graph is captured
            return _Captured(self._module, example)

    def graphs(self) -> None:
        """Torch counts none; a shape that was not prepared is an error."""


class _Captured:
    """One graph with its fixed buffers. For the thread and the stream that captured it."""

    def __init__(self, module: Module, example: Arguments) -> None:
        self._inputs = tuple(one.clone() for one in example)
        for _ in range(_WARM_UP_CALLS):
            module(*self._inputs)
        torch.cuda.current_stream().synchronize()
        self._graph: Any = torch.cuda.CUDAGraph()
        self._graph.capture_begin(capture_error_mode="thread_local")
        try:
            self._outputs: Tensor = module(*self._inputs)
        finally:
            self._graph.capture_end()

    def replay(self, arguments: Arguments) -> Tensor:
        """The outputs for these arguments, in memory of their own: the next replay writes over the graph's."""
        for fixed, given in zip(self._inputs, arguments, strict=True):
            fixed.copy_(given, non_blocking=True)
        self._graph.replay()
        return self._outputs.clone()


def _stream_to_capture_on() -> Any:
    """The worker's own stream; a new one where the thread is on the default stream, which cannot be captured."""
    current = torch.cuda.current_stream()
    if current != torch.cuda.default_stream():
        return current
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]
