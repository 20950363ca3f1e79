"""What must a model tell of its torch network, so that it can run in other ways than the model's own?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from torch import Size, Tensor
from torch.nn import Module

Arguments: TypeAlias = tuple[Tensor, ...]
Call: TypeAlias = Callable[..., Tensor]
Shapes: TypeAlias = tuple[Size, ...]


class Bucket(NamedTuple):
    """The shape of a call: rows, and the length of each; length 0 = rows have one length only."""

    size: int
    length: int

    def __str__(self) -> str:
        return f"{self.size} x {self.length}" if self.length else str(self.size)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A model's network. Its rows must not depend on each other: calls are padded with copies of a row.

    `module` takes tensors and gives one tensor, the rows being the first dimension of each. It is in float32
    and in eval mode, and its weights lie where the device computes.
    """

    module: Module
    arguments: Callable[[Any], Arguments]  # the inputs of a collated batch, as the module takes them
    example: Callable[[int, int], Arguments]  # so many rows of such a length, on the host
    longest: int = 0  # the greatest length of a row; 0 = rows have one length only


def shapes_of(arguments: Arguments) -> Shapes:
    """The shape of every argument: what a level with fixed shapes finds its own by."""
    return tuple(one.shape for one in arguments)
