"""What does batching gain when the weights do not fit the caches? An MLP of 33 MB answers that.

Layers of 64, 2048, 2048, 2048 and 4 in float32, ReLU between them, seeded and untrained. The layers call
torch's plain `linear` on purpose: other servers run the same arithmetic in the comparisons under
`tests/bench`, and a faster kernel here would flatter the server.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from perfkit.serving.server.model import Collated, InputRefused
from perfkit.serving.server.signature import Signature, TensorSpec
from sample_models.seeded import seeded_generator, uniform

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device
    from perfkit.serving.execution.network import Network

WIDTHS = (64, 2048, 2048, 2048, 4)
_NUMBER_TYPES = frozenset((int, float))  # bool, a kind of int, is not among them
_ROW = struct.Struct(f"<{WIDTHS[0]}f")  # unlike the native form, "<" reports a number that float32 cannot hold


class Mlp:
    """64 numbers in, 4 floats out. Any number of threads may use one instance after `load`."""

    payloads: ClassVar[str] = "numbers/mlp.jsonl"
    runs_on_cuda: ClassVar[bool] = True
    signature: ClassVar[Signature] = Signature(
        inputs=(TensorSpec(name="numbers", datatype="FP32", shape=WIDTHS[:1]),),
        outputs=(TensorSpec(name="scores", datatype="FP32", shape=WIDTHS[-1:]),),
        to_payload=lambda row: row["numbers"].tolist(),
        to_tensors=lambda answer: {"scores": answer},
    )

    _layers: tuple[tuple[Tensor, Tensor], ...]

    def load(self, device: Device, seed: int) -> None:
        """Draw the weights from `seed`, evenly within 1 / sqrt(inputs) of zero."""
        generator = seeded_generator(seed)

        def drawn(shape: tuple[int, ...], inputs: int) -> Tensor:
            weights: Tensor = device.place(uniform(shape, inputs**-0.5, generator))
            return weights

        self._layers = tuple(
            (drawn((outputs, inputs), inputs), drawn((outputs,), inputs))
            for inputs, outputs in itertools.pairwise(WIDTHS)
        )

    def weights(self) -> list[Tensor]:
        """All weights and biases, in the host's memory."""
        return [array.cpu() for layer in self._layers for array in layer]

    def preprocess(self, payload: Any) -> bytes:
        """The 64 numbers as float32 bytes, which `collate` joins without looking at them again."""
        if type(payload) is not list or len(payload) != WIDTHS[0]:
            raise InputRefused(f"the input is {_describe(payload)}; send a list of {WIDTHS[0]} numbers")
        if not _NUMBER_TYPES.issuperset(map(type, payload)):
            place = next(index for index, value in enumerate(payload) if type(value) not in _NUMBER_TYPES)
            found = _describe(payload[place])
            raise InputRefused(f"item {place} of the input is {found}; each of the {WIDTHS[0]} must be a number")
        try:
            row = _ROW.pack(*payload)
        except (OverflowError, struct.error) as error:  # the latter for an integer beyond any float
            raise InputRefused("the input holds a number beyond float32; each must lie within ±3.4e38") from error
        # The sum of 64 finite float32 numbers cannot overflow a float, so that it is finite only if all are.
        if not math.isfinite(sum(payload)):
            raise InputRefused("the input holds NaN or an infinity; each number must be finite")
        return row

    def collate(self, items: Sequence[bytes]) -> Collated:
        """All rows as one tensor; a request is the unit of work."""
        size = len(items)
        inputs = torch.frombuffer(bytearray().join(items), dtype=torch.float32).view(size, WIDTHS[0])
        return Collated(inputs=inputs, size=size, units=size, padded_units=size, nbytes=inputs.nbytes)

    def predict(self, inputs: Tensor) -> Tensor:
        """Four numbers a row."""
        with torch.inference_mode():
            *hidden, (last_weight, last_bias) = self._layers
            for weight, bias in hidden:
                inputs = functional.linear(inputs, weight, bias).relu_()
            return functional.linear(inputs, last_weight, last_bias)

    def network(self) -> Network:
        """The same weights in torch's own layers, for the other levels of execution."""
        from perfkit.serving.execution.network import Network

        return Network(module=_module(self._layers), arguments=lambda inputs: (inputs,), example=self._example_of)

    def _example_of(self, size: int, length: int) -> tuple[Tensor]:
        rows = [[math.sin(row + index) for index in range(WIDTHS[0])] for row in range(size)]
        return (torch.tensor(rows),)

    def split(self, outputs: Tensor, size: int) -> list[list[float]]:
        """One list of four floats a request, made in one call for the whole batch."""
        rows: list[list[float]] = outputs.tolist()
        return rows

    def postprocess(self, output: list[float]) -> list[float]:
        """The four floats as they are."""
        return output

    def example(self) -> list[float]:
        """64 numbers between -1 and 1."""
        return [round(math.sin(index), 4) for index in range(WIDTHS[0])]


def _module(layers: Sequence[tuple[Tensor, Tensor]]) -> nn.Module:
    parts: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
        linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def _describe(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    return f"of type {type(value).__name__}"
