"""Which tensors does a model take and give, and how do they become its payloads and come from its answers?

The Open Inference Protocol speaks in tensors, `Model.preprocess` takes payloads. A model says how the
two belong together in an optional attribute `signature`; without one an input is a JSON document in
a BYTES tensor, and so is an output. Shapes here are those of one input of a request: on the wire
each tensor has one more axis in front, along which the inputs of a request lie.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from perfkit.errors import ConfigError
from perfkit.serving.server.model import InputRefused

DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "BF16", "FP32", "FP64", "BYTES",
)  # fmt: skip
ANY = -1  # a dimension of an input that may have any size


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One tensor of one input or output: (64,) for 64 numbers, (1,) for one text."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.datatype not in DATATYPES:
            allowed = ", ".join(DATATYPES)
            raise ConfigError(f"tensor {self.name!r} has the datatype {self.datatype!r}; it takes one of {allowed}")
        if not all(isinstance(size, int) and (size >= 1 or size == ANY) for size in self.shape):
            raise ConfigError(f"tensor {self.name!r} has the shape {self.shape}; sizes are 1 or more, or -1 for any")

    @property
    def wire_shape(self) -> list[int]:
        """The shape as the protocol shows it, with the axis of the inputs in front."""
        return [ANY, *self.shape]


Row = Mapping[str, Any]
"""One input's or output's tensors by name: numpy arrays; those of BYTES hold bytes objects."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """A model in tensors. Both functions are called from any thread."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    to_payload: Callable[[Row], Any]  # raises InputRefused for what cannot be one
    to_tensors: Callable[[Any], Mapping[str, Any]]  # what `postprocess` gave, by the outputs' names

    def __post_init__(self) -> None:
        for specs in (self.inputs, self.outputs):
            names = [spec.name for spec in specs]
            if not names or len(set(names)) != len(names):
                raise ConfigError(f"a signature has the tensors {names}; it needs at least one, each with its own name")
        if loose := [spec.name for spec in self.outputs if ANY in spec.shape]:
            raise ConfigError(f"output {loose[0]!r} has a size of -1; the sizes of outputs must be given")


def text_of(element: bytes) -> str:
    """An element of a BYTES tensor as text; raises InputRefused when it is not UTF-8."""
    try:
        return element.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputRefused(f"the text is not UTF-8 ({error.reason} at byte {error.start}); encode it so") from None
