"""Which networks does the check run? The MLP, and an encoder of its own whose weights come from a seed.

The encoder is that of BERT (post-norm, Devlin et al. 2018) without padding: token ids in, the mean over
the tokens out, scaled to length 1. No weights have to be brought along.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from perfkit.serving.devices.lane import Batch
from sample_models.mlp import WIDTHS, Mlp
from sample_models.seeded import seeded_generator

_SEED = 4
_VOCABULARY = 1024
_DISTINCT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSize:
    """How large the encoder is."""

    layers: int
    width: int
    heads: int
    tokens: int  # of every text


LARGE = EncoderSize(layers=24, width=1024, heads=16, tokens=128)  # BERT-large: some 300 kernels a call
SMALL = EncoderSize(layers=2, width=32, heads=2, tokens=8)  # outputs worth comparing, at no cost worth mentioning


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBatch:
    """A batch in the host's memory. `nbytes` is what a copy of it takes."""

    inputs: Any
    size: int
    nbytes: int


class Layer(nn.Module):
    """Self-attention and a feed-forward part, each with its sum and norm."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.heads = size.heads
        self.joined = nn.Linear(size.width, 3 * size.width)
        self.mixed = nn.Linear(size.width, size.width)
        self.mixed_norm = nn.LayerNorm(size.width)
        self.widen = nn.Linear(size.width, 4 * size.width)
        self.narrow = nn.Linear(4 * size.width, size.width)
        self.norm = nn.LayerNorm(size.width)

    def forward(self, x: Tensor) -> Tensor:
        """For x (rows, tokens, width)."""
        rows, tokens, width = x.shape
        split = self.joined(x).view(rows, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = self.mixed_norm(x + self.mixed(mixed.transpose(1, 2).reshape(rows, tokens, width)))
        normed: Tensor = self.norm(x + self.narrow(functional.gelu(self.widen(x))))
        return normed


class Encoder(nn.Module):
    """Token ids (rows, tokens) to unit vectors (rows, width) in float32."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.size = size
        # Its usual drawing would load torch's compiler for a tensor of the meta device.
        self.words = nn.Embedding.from_pretrained(torch.empty(_VOCABULARY, size.width))  # type: ignore[no-untyped-call]
        self.layers = nn.Sequential(*(Layer(size) for _ in range(size.layers)))

    def share_layers(self) -> None:
        """Let every other layer be the same one: the host draws and keeps two, whatever their number."""
        self.layers = nn.Sequential(*(self.layers[at % _DISTINCT] for at in range(self.size.layers)))

    def forward(self, ids: Tensor) -> Tensor:
        """One vector a row."""
        return functional.normalize(self.layers(self.words(ids)).float().mean(dim=1), dim=1)


def encoder(size: EncoderSize) -> Encoder:
    """An encoder in float32 and eval mode, its weights drawn from a fixed seed."""
    with torch.device("meta"):
        network = Encoder(size)
    network.share_layers()
    network = network.to_empty(device="cpu").eval().requires_grad_(False)
    generator = seeded_generator(_SEED)
    for module in network.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.fill_(1.0)
            module.bias.zero_()
        elif isinstance(module, nn.Linear):
            module.weight.uniform_(*_even(module.in_features), generator=generator)
            module.bias.uniform_(*_even(module.in_features), generator=generator)
        elif isinstance(module, nn.Embedding):
            module.weight.normal_(generator=generator)
    return network


def placed(network: Encoder, dtype: torch.dtype, place: Callable[[Tensor], Tensor]) -> Encoder:
    """The same network in another type on a device, every layer in memory of its own."""
    with torch.device("meta"):
        twin = Encoder(network.size)
    twin.load_state_dict({name: place(weight.to(dtype)) for name, weight in network.state_dict().items()}, assign=True)
    return twin.eval().requires_grad_(False)


def _even(inputs: int) -> tuple[float, float]:
    limit = math.sqrt(3.0 / inputs)  # a variance of 1 / inputs, so that layers neither swell nor fade
    return -limit, limit


def texts(size: EncoderSize, rows: int, seed: int) -> HostBatch:
    """Token ids from a seed."""
    ids = torch.randint(_VOCABULARY, (rows, size.tokens), generator=seeded_generator(seed))
    return HostBatch(inputs=ids, size=rows, nbytes=ids.nbytes)


def mlp_row(model: Mlp, seed: int) -> HostBatch:
    """One row of numbers that no other seed gives."""
    row = torch.empty(WIDTHS[0]).uniform_(-1.0, 1.0, generator=seeded_generator(seed)).tolist()
    batch = model.collate([model.preprocess(row)])
    return HostBatch(inputs=batch.inputs, size=batch.size, nbytes=batch.nbytes)


def mlp_outputs(model: Mlp, batches: Sequence[Batch]) -> list[Tensor]:
    """What the MLP gives for each batch, computed in one call."""
    outputs = model.predict(torch.cat([batch.inputs for batch in batches]))
    return list(outputs.split_with_sizes([batch.size for batch in batches]))
