"""Which names of torch does the stand-in take over? Streams, events, copies, and whatever makes a tensor."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from fake_cuda.order import Line, Mark
from fake_cuda.state import CYCLES_PER_NS, FakeCuda
from fake_cuda.tensors import GpuTensor, PinnedTensor, in_pinned, on_gpu, plainly, transfer

UUID = "00000000-0000-0000-0000-000000000007"  # as torch prints it, without NVML's prefix
_FACTORIES = ("empty", "zeros", "ones", "full", "arange", "tensor", "rand", "randn")


class Stream:
    """As torch.cuda.Stream."""

    gpu: FakeCuda

    def __init__(self, device: Any = None, priority: int = 0, line: Line | None = None) -> None:
        self.line = line or self.gpu.open_line(max(-3, min(0, priority)))
        self.priority = self.line.priority
        self.device = torch.device("cuda", 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.line is self.line

    def __hash__(self) -> int:
        return hash(self.line.number)

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self.gpu.join(self.line, self.gpu.record(stream.line))

    def synchronize(self) -> None:
        self.gpu.finish_line(self.line)


class Event:
    """As torch.cuda.Event."""

    gpu: FakeCuda

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.mark: Mark | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.mark = self.gpu.record(stream.line if stream else self.gpu.current)

    def wait(self, stream: Stream | None = None) -> None:
        if self.mark is not None:
            self.gpu.join(stream.line if stream else self.gpu.current, self.mark)

    def synchronize(self) -> None:
        if self.mark is not None:
            self.gpu.called("sleep" if self.blocking else "spin")
            self.gpu.finish(self.mark)

    def query(self) -> bool:
        return self.mark is None or self.gpu.has_happened(self.mark)

    def elapsed_time(self, end: Event) -> float:
        if self.mark is None or end.mark is None or not (self.enable_timing and end.enable_timing):
            raise ValueError("Both events must be recorded and enable timing before their times are compared")
        return self.gpu.elapsed_ns(self.mark, end.mark) / 1e6


def install(gpu: FakeCuda) -> contextlib.ExitStack:
    """Put the stand-in in the place of torch's own CUDA; closing the stack takes it away again."""
    stack = contextlib.ExitStack()
    for owner, names in ((torch.cuda, _cuda_names(gpu)), (torch, _factories(gpu)), (Tensor, _methods(gpu))):
        for name, value in names.items():
            stack.enter_context(mock.patch.object(owner, name, value))
    return stack


def _cuda_names(gpu: FakeCuda) -> dict[str, Any]:
    stream = type("Stream", (Stream,), {"gpu": gpu})
    event = type("Event", (Event,), {"gpu": gpu})

    @contextlib.contextmanager
    def current(wanted: Stream) -> Iterator[None]:
        before = gpu.current
        gpu.set_current(wanted.line)
        try:
            yield
        finally:
            gpu.set_current(before)

    def synchronize(device: Any = None) -> None:
        raise gpu.rule("device-wide synchronize", "it waits for the work of every worker; wait for an event")

    def cap(ratio: float, device: Any = None) -> None:
        gpu.calls.append("cap")
        gpu.cap_ratio = ratio

    def memory_stats(device: Any = None) -> dict[str, int]:
        held = gpu.allocated_bytes
        return {"allocated_bytes.all.current": held, "reserved_bytes.all.current": held, "num_ooms": gpu.ooms}

    return {
        "Stream": stream,
        "Event": event,
        "stream": current,
        "current_stream": lambda device=None: stream(line=gpu.current),
        "default_stream": lambda device=None: stream(line=gpu.default),
        "synchronize": synchronize,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_properties": lambda device=None: SimpleNamespace(total_memory=gpu.capacity_bytes, uuid=UUID),
        "set_per_process_memory_fraction": cap,
        "memory_stats": memory_stats,
        "empty_cache": lambda: gpu.called("empty_cache"),
        "_sleep": lambda cycles: gpu.kernel("_sleep", [], [], round(cycles / CYCLES_PER_NS)),
    }


def _factories(gpu: FakeCuda) -> dict[str, Any]:
    def faked(name: str) -> Callable[..., Any]:
        original = getattr(torch, name)

        @functools.wraps(original)
        def make(*args: Any, device: Any = None, pin_memory: bool = False, **kwargs: Any) -> Any:
            if device is not None and torch.device(device).type == "cuda":
                made = on_gpu(original(*args, **kwargs), gpu)
                if name != "empty":
                    gpu.kernel(name, [], [made.block])
                return made
            if pin_memory:
                return in_pinned(original(*args, **kwargs), gpu)
            return original(*args, **({"device": device} if device is not None else {}), **kwargs)

        return make

    return {name: faked(name) for name in _FACTORIES}


def _methods(gpu: FakeCuda) -> dict[str, Any]:
    original_to, original_copy = Tensor.to, Tensor.copy_

    def to(self: Tensor, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Any:
        wanted, others = _device_in(args, kwargs)
        if wanted is None or wanted.type == ("cuda" if isinstance(self, GpuTensor) else "cpu"):
            return original_to(self, *others[0], **others[1]) if others != ((), {}) else self
        made = plainly(torch.empty_like, self)
        target = on_gpu(made, gpu) if wanted.type == "cuda" else in_pinned(made, gpu) if non_blocking else made
        transfer(target, self, non_blocking)
        return original_to(target, *others[0], **others[1]) if others != ((), {}) else target

    def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        if isinstance(self, GpuTensor) == isinstance(source, GpuTensor):
            return original_copy(self, source)
        transfer(self, source, non_blocking)
        return self

    return {
        "to": to,
        "copy_": copy_,
        "cuda": lambda self, device=None, non_blocking=False: to(self, "cuda", non_blocking=non_blocking),
        "cpu": lambda self: to(self, "cpu"),
        "pin_memory": lambda self: in_pinned(plainly(self.clone), gpu),
        "is_pinned": lambda self: isinstance(self, PinnedTensor),
    }


def _device_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.device | None, Any]:
    """The device among the arguments of `to`, and the arguments without it."""
    if "device" in kwargs:
        return torch.device(kwargs["device"]), (args, {name: kwargs[name] for name in kwargs if name != "device"})
    if args and isinstance(args[0], (str, torch.device)):
        return torch.device(args[0]), (args[1:], kwargs)
    return None, (args, kwargs)
