"""How does an image classifier load a service: heavy decoding before the model, heavy convolutions in it?

The network has the shape of ResNet-18 (He et al. 2015, table 1) with seeded random weights. It is
UNTRAINED: its cost is real, its classes mean nothing, and each answer says so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn
from torch.nn import functional

from perfkit.serving.server.model import Collated
from perfkit.serving.server.signature import Signature, TensorSpec
from sample_models.jpeg import decode_jpeg, example_jpeg, file_or_text, jpeg_bytes
from sample_models.seeded import normal, seeded_generator

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device
    from perfkit.serving.execution.network import Network

SIDE = 224
CLASSES = 1000
_STAGE_WIDTHS = (64, 128, 256, 512)
_BLOCKS_PER_STAGE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class _Convolution:
    """A convolution with its batch normalisation folded in: a scale in the weights, a shift in the bias."""

    weight: Tensor
    bias: Tensor
    stride: int

    def on(self, device: Device) -> _Convolution:
        return _Convolution(device.place(self.weight), device.place(self.bias), self.stride)

    def __call__(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight, self.bias, self.stride, padding=self.weight.shape[2] // 2)


@dataclasses.dataclass(frozen=True, slots=True)
class _Block:
    """Two convolutions and a way around them."""

    first: _Convolution
    second: _Convolution
    around: _Convolution | None

    def on(self, device: Device) -> _Block:
        around = None if self.around is None else self.around.on(device)
        return _Block(self.first.on(device), self.second.on(device), around)

    def __call__(self, x: Tensor) -> Tensor:
        kept = x if self.around is None else self.around(x)
        return self.second(self.first(x).relu_()).add_(kept).relu_()


class ResNet:
    """A JPEG in, the likeliest of 1000 untrained classes out. Threads may share one instance after `load`."""

    payloads: ClassVar[str] = "images/images.jsonl"
    runs_on_cuda: ClassVar[bool] = True
    signature: ClassVar[Signature] = Signature(
        inputs=(TensorSpec(name="image", datatype="BYTES", shape=(1,)),),
        outputs=(
            TensorSpec(name="class", datatype="INT64", shape=(1,)),
            TensorSpec(name="score", datatype="FP32", shape=(1,)),
            TensorSpec(name="trained", datatype="BOOL", shape=(1,)),
        ),
        to_payload=lambda row: file_or_text(row["image"][0]),
        to_tensors=lambda answer: {name: [value] for name, value in answer.items()},
    )

    _stem: _Convolution
    _blocks: tuple[_Block, ...]
    _head: tuple[Tensor, Tensor]

    def load(self, device: Device, seed: int) -> None:
        """Draw the weights from `seed`."""
        generator = seeded_generator(seed)
        self._stem = _convolution(3, _STAGE_WIDTHS[0], 7, 2, generator).on(device)
        self._blocks = tuple(block.on(device) for block in _blocks(generator))
        deviation = 1 / _STAGE_WIDTHS[-1]  # small, or one class would take all of the probability
        head = (normal((CLASSES, _STAGE_WIDTHS[-1]), deviation, generator), torch.zeros(CLASSES))
        self._head = (device.place(head[0]), device.place(head[1]))

    def preprocess(self, payload: Any) -> NDArray[np.float32]:
        """Decode a JPEG, in base64 or as it is, to a normalised square; raises InputRefused for anything else."""
        return decode_jpeg(jpeg_bytes(payload), SIDE)

    def collate(self, items: Sequence[NDArray[np.float32]]) -> Collated:
        """All pictures as one tensor; a pixel is the unit of work, and none is padding."""
        inputs = torch.from_numpy(np.stack(items))
        units = len(items) * SIDE * SIDE
        return Collated(inputs=inputs, size=len(items), units=units, padded_units=units, nbytes=inputs.nbytes)

    def predict(self, inputs: Tensor) -> Tensor:
        """Probabilities of the classes, one row a picture."""
        with torch.inference_mode():
            # With the channels last, torch's convolutions need not rearrange each layer's input.
            x = self._stem(inputs.contiguous(memory_format=torch.channels_last)).relu_()
            x = functional.max_pool2d(x, 3, stride=2, padding=1)
            for block in self._blocks:
                x = block(x)
            return functional.linear(x.mean((2, 3)), *self._head).softmax(1)

    def network(self) -> Network:
        """The same weights as a torch module, for the other levels of execution."""
        from perfkit.serving.execution.network import Network

        module = _Module(self._stem, self._blocks, self._head)
        return Network(module=module, arguments=lambda inputs: (inputs,), example=_example_of)

    def split(self, outputs: Tensor, size: int) -> Sequence[NDArray[np.float32]]:
        """One row a picture, without a copy."""
        return list(np.asarray(outputs)[:size])

    def postprocess(self, output: NDArray[np.float32]) -> dict[str, Any]:
        """The likeliest class and its probability, marked as untrained."""
        best = int(output.argmax())
        return {"class": best, "score": round(float(output[best]), 6), "trained": False}

    def example(self) -> str:
        """A small grey picture."""
        return example_jpeg()


class _Module(nn.Module):
    """The network of torch's own layers."""

    def __init__(self, stem: _Convolution, blocks: Sequence[_Block], head: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        self.stem = _layer(stem)
        self.blocks = nn.Sequential(*map(_BlockModule, blocks))
        self.head_weight, self.head_bias = nn.Parameter(head[0]), nn.Parameter(head[1])

    def forward(self, pictures: Tensor) -> Tensor:
        """Probabilities of the classes, one row a picture."""
        x = self.stem(pictures.contiguous(memory_format=torch.channels_last)).relu()
        x = self.blocks(functional.max_pool2d(x, 3, stride=2, padding=1))
        return functional.linear(x.mean((2, 3)), self.head_weight, self.head_bias).softmax(1)


class _BlockModule(nn.Module):
    def __init__(self, block: _Block) -> None:
        super().__init__()
        self.first, self.second = _layer(block.first), _layer(block.second)
        self.around = nn.Identity() if block.around is None else _layer(block.around)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(self.first(x).relu()) + self.around(x)
        return x.relu()


def _layer(convolution: _Convolution) -> nn.Conv2d:
    weight = convolution.weight
    outputs, inputs, side, _ = weight.shape
    layer = nn.Conv2d(inputs, outputs, side, convolution.stride, padding=side // 2, device="meta")
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(convolution.bias)
    return layer


def _example_of(size: int, length: int) -> tuple[Tensor]:
    """Waves of another length in each picture."""
    places = torch.arange(3 * SIDE * SIDE, dtype=torch.float32).view(3, SIDE, SIDE)
    return (torch.stack([torch.sin(places / (row + 2)) for row in range(size)]),)


def _blocks(generator: Generator) -> tuple[_Block, ...]:
    blocks: list[_Block] = []
    inputs = _STAGE_WIDTHS[0]
    for width in _STAGE_WIDTHS:
        for _ in range(_BLOCKS_PER_STAGE):
            blocks.append(_block(inputs, width, generator))
            inputs = width
    return tuple(blocks)


def _block(inputs: int, width: int, generator: Generator) -> _Block:
    """A block that changes the width also halves the picture, so that its way around needs a convolution too."""
    stride = 1 if inputs == width else 2
    return _Block(
        _convolution(inputs, width, 3, stride, generator),
        _convolution(width, width, 3, 1, generator),
        None if inputs == width else _convolution(inputs, width, 1, stride, generator),
    )


def _convolution(inputs: int, outputs: int, side: int, stride: int, generator: Generator) -> _Convolution:
    # He et al. 2015, "Delving deep into rectifiers", eq. 10: keeps the variance from layer to layer.
    deviation = math.sqrt(2 / (inputs * side * side))
    weight = normal((outputs, inputs, side, side), deviation, generator)
    return _Convolution(weight.contiguous(memory_format=torch.channels_last), torch.zeros(outputs), stride)
