"""What does a BERT-style sentence encoder compute, from token ids to one unit vector a text?

Post-norm encoder layers (Vaswani et al. 2017, section 3; Devlin et al. 2018), then the mean over the
real tokens, scaled to length 1. Frozen weights only: nothing here trains, and nothing here keeps state,
so that any number of threads may call one encoder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from sample_models.linear import Linear, fastest_linear


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EncoderShape:
    """The figures of the model's config file that change what is computed."""

    layers: int
    heads: int
    norm_epsilon: float


@dataclasses.dataclass(frozen=True, slots=True)
class _Norm:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    heads: int
    query_key_value: Linear
    attention_out: Linear
    attention_norm: _Norm
    widen: Linear
    narrow: Linear
    output_norm: _Norm

    def __call__(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention_norm(self.attention_out.plus(self.attend(x, mask), x))
        return self.output_norm(self.narrow.plus(self.widen.gelu(x), x))

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        size, length, width = x.shape
        split = self.query_key_value(x).view(size, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(size, length, width)


class SentenceEncoder:
    """Token ids in, unit vectors out."""

    def __init__(self, weights: Mapping[str, Tensor], shape: EncoderShape) -> None:
        """Take the weights under their published names; raises KeyError for one that is missing."""
        self._words = weights["embeddings.word_embeddings.weight"]
        # Every text is a first segment, so that its row of the segment table belongs to each position.
        segment = weights["embeddings.token_type_embeddings.weight"][0]
        self._positions = weights["embeddings.position_embeddings.weight"] + segment
        self._norm = _norm(weights, "embeddings.LayerNorm", shape)
        self._layers = tuple(_layer(weights, f"encoder.layer.{index}.", shape) for index in range(shape.layers))

    def __call__(self, ids: Tensor, lengths: Tensor | None) -> Tensor:
        """Embed int ids (size, longest); `lengths` counts the real tokens, None = no row is padded."""
        x = self._norm(functional.embedding(ids, self._words) + self._positions[: ids.shape[1]])
        if lengths is None:
            return functional.normalize(self._encode(x, None).mean(1), dim=1)
        real = torch.arange(ids.shape[1], device=ids.device) < lengths.unsqueeze(1)
        return functional.normalize(_masked_mean(self._encode(x, _attention_mask(real)), real, lengths), dim=1)

    def _encode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self._layers:
            x = layer(x, mask)
        return x


def _attention_mask(real: Tensor) -> Tensor:
    """0 where a key is a real token and -inf where it is padding; a bool mask is rewritten to this in every layer."""
    mask = torch.zeros(real.shape, dtype=torch.float32, device=real.device).masked_fill_(~real, float("-inf"))
    return mask[:, None, None, :]


def _masked_mean(x: Tensor, real: Tensor, lengths: Tensor) -> Tensor:
    weights = real.to(x.dtype) / lengths.unsqueeze(1)
    return torch.bmm(weights.unsqueeze(1), x).squeeze(1)


def _layer(weights: Mapping[str, Tensor], prefix: str, shape: EncoderShape) -> _Layer:
    def linear(name: str) -> Linear:
        return fastest_linear(weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"])

    def joined(kind: str) -> Tensor:
        # One product with three results costs less than three products.
        return torch.cat([weights[f"{prefix}attention.self.{part}.{kind}"] for part in ("query", "key", "value")])

    return _Layer(
        heads=shape.heads,
        query_key_value=fastest_linear(joined("weight"), joined("bias")),
        attention_out=linear("attention.output.dense"),
        attention_norm=_norm(weights, f"{prefix}attention.output.LayerNorm", shape),
        widen=linear("intermediate.dense"),
        narrow=linear("output.dense"),
        output_norm=_norm(weights, f"{prefix}output.LayerNorm", shape),
    )


def _norm(weights: Mapping[str, Tensor], name: str, shape: EncoderShape) -> _Norm:
    return _Norm(weights[f"{name}.weight"], weights[f"{name}.bias"], shape.norm_epsilon)
