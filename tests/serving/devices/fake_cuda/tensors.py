"""What do the stand-in's tensors look like? CPU tensors that say they are elsewhere, and tell of every use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from fake_cuda.order import Block
from fake_cuda.state import FakeCuda

WHERE = torch.device("cuda", 0)
# What can be asked of a tensor without looking at its data; of attributes, all.
_FACTS = frozenset(
    {
        "__get__",
        "_has_compatible_shallow_copy_type",
        "__hash__",
        "__len__",
        "__repr__",
        "data_ptr",
        "dim",
        "element_size",
        "get_device",
        "is_complex",
        "is_contiguous",
        "is_floating_point",
        "is_inference",
        "nelement",
        "numel",
        "size",
        "storage_offset",
        "stride",
        "untyped_storage",
    }
)
_COPY = Tensor.copy_  # torch's own, before anything takes its place
_ALIASES = {"device": WHERE, "is_cuda": True, "is_cpu": False}


class GpuTensor(Tensor):
    """A tensor in the memory of the GPU, or a view of one."""

    gpu: FakeCuda
    block: Block

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _call(func, args, kwargs or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):  # what makes a tensor of a kind of its own a parameter of a module
            copied._is_param = True  # type: ignore[attr-defined]
        return copied


class PinnedTensor(Tensor):
    """A tensor in pinned memory of the host, or a view of one."""

    gpu: FakeCuda
    block: Block

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _call(func, args, kwargs or {})


def plainly(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call torch as if the tensors were ordinary ones."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def dressed(kind: type, tensor: Tensor, gpu: FakeCuda, block: Block) -> Any:
    """The tensor as one of the GPU or of pinned memory."""
    made = plainly(tensor.as_subclass, kind)
    made.gpu, made.block = gpu, block
    return made


def on_gpu(tensor: Tensor, gpu: FakeCuda) -> GpuTensor:
    """An ordinary tensor that is the GPU's from now on, in memory of the current stream."""
    return dressed(GpuTensor, tensor, gpu, gpu.allocate(_nbytes(tensor), gpu.current))  # type: ignore[no-any-return]


def in_pinned(tensor: Tensor, gpu: FakeCuda) -> PinnedTensor:
    """An ordinary tensor that is in pinned memory from now on."""
    return dressed(PinnedTensor, tensor, gpu, gpu.pinned(_nbytes(tensor)))  # type: ignore[no-any-return]


def transfer(target: Tensor, source: Tensor, non_blocking: bool) -> None:
    """Copy between host and GPU, one of which each side must be."""
    gpu: FakeCuda = target.gpu if isinstance(target, GpuTensor) else source.gpu  # type: ignore[attr-defined]
    host = source if isinstance(target, GpuTensor) else target
    if non_blocking and not isinstance(host, PinnedTensor):
        raise gpu.rule("non_blocking without pinned memory", "the host's side of the copy is pageable")
    name = "copy h2d" if host is source else "copy d2h"
    gpu.copy(name, getattr(source, "block", None), getattr(target, "block", None), _nbytes(source))
    plainly(_COPY, target, source)
    if not non_blocking:
        gpu.finish(gpu.record(gpu.current))


def _call(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    tensors = list(_tensors((args, kwargs)))
    theirs = [tensor for tensor in tensors if isinstance(tensor, GpuTensor)]
    if name == "__get__" and theirs and func.__self__.__name__ in _ALIASES:
        return _ALIASES[func.__self__.__name__]
    result = plainly(func, *args, **({**kwargs, "device": "cpu"} if "device" in kwargs else kwargs))
    if name == "__set__":
        if func.__self__.__name__ == "data":
            args[0].block = args[1].block
        return None
    if theirs:
        return _on_gpu(name, tensors, theirs, result)
    return _on_host(name, tensors, result)


def _on_gpu(name: str, tensors: list[Tensor], theirs: list[GpuTensor], result: Any) -> Any:
    gpu, blocks = theirs[0].gpu, {_pointer(tensor): tensor.block for tensor in theirs}
    if any(not isinstance(tensor, GpuTensor) and plainly(tensor.dim) for tensor in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, in {name}: one is on the host")
    is_in_place = _is_in_place(name)
    found = list(_tensors(result))
    if name in _FACTS and not found:
        return result
    if not found and not is_in_place:
        raise gpu.rule("host read", f"{name} looks at data of the GPU; copy them out to pinned memory")
    fresh = [tensor for tensor in found if _pointer(tensor) not in blocks]
    for tensor in fresh:
        blocks[_pointer(tensor)] = gpu.allocate(_nbytes(tensor), gpu.current)
    if fresh or is_in_place:
        written = [blocks[_pointer(tensor)] for tensor in (*fresh, *(theirs[:1] if is_in_place else ()))]
        gpu.kernel(name, {tensor.block for tensor in theirs} - set(written), written)
    return _dress_all(result, lambda tensor: dressed(GpuTensor, tensor, gpu, blocks[_pointer(tensor)]))


def _on_host(name: str, tensors: list[Tensor], result: Any) -> Any:
    pinned = [tensor for tensor in tensors if isinstance(tensor, PinnedTensor)]
    gpu, blocks = pinned[0].gpu, {_pointer(tensor): tensor.block for tensor in pinned}
    found = list(_tensors(result))
    if not found and name in _FACTS:
        return result
    if _is_in_place(name):
        gpu.host_uses(pinned[0].block, is_write=True)
    elif not found or any(_pointer(tensor) not in blocks for tensor in found):
        for block in set(blocks.values()):
            gpu.host_uses(block, is_write=False)
    return _dress_all(result, lambda tensor: _as_pinned(tensor, gpu, blocks))


def _as_pinned(tensor: Tensor, gpu: FakeCuda, blocks: dict[int, Block]) -> Tensor:
    block = blocks.get(_pointer(tensor))
    return tensor if block is None else dressed(PinnedTensor, tensor, gpu, block)  # type: ignore[no-any-return]


def _is_in_place(name: str) -> bool:
    if name == "requires_grad_":
        return False  # a note on the tensor
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _pointer(tensor: Tensor) -> int:
    return plainly(lambda: tensor.untyped_storage().data_ptr()) or id(tensor)


def _nbytes(tensor: Tensor) -> int:
    return plainly(lambda: tensor.nbytes)  # type: ignore[no-any-return]


def _tensors(data: Any) -> Iterator[Tensor]:
    if isinstance(data, Tensor):
        yield data
    elif isinstance(data, (tuple, list, dict)):
        for part in data.values() if isinstance(data, dict) else data:
            yield from _tensors(part)


def _dress_all(data: Any, dress: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(data, Tensor):
        return data if isinstance(data, (GpuTensor, PinnedTensor)) else dress(data)
    if isinstance(data, (tuple, list)):
        return type(data)(_dress_all(part, dress) for part in data)
    return data
