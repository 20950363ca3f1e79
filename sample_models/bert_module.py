"""What is the sentence encoder as a torch module, for whoever transforms modules: tracers, compilers, other dtypes?

The same network as in `bert.py`, of torch's own layers. It is slower on a CPU than that one's packed weights,
and it is what torch.jit, torch.compile and AOTInductor can read.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from sample_models.bert import EncoderShape


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part, each with its sum and norm (post-norm)."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str, shape: EncoderShape) -> None:
        super().__init__()
        self.heads = shape.heads
        joined = [
            torch.cat([weights[f"{prefix}attention.self.{part}.{kind}"] for part in ("query", "key", "value")])
            for kind in ("weight", "bias")
        ]
        self.query_key_value = _linear(*joined)
        self.attention_out = _linear_of(weights, f"{prefix}attention.output.dense")
        self.attention_norm = _norm_of(weights, f"{prefix}attention.output.LayerNorm", shape)
        self.widen = _linear_of(weights, f"{prefix}intermediate.dense")
        self.narrow = _linear_of(weights, f"{prefix}output.dense")
        self.output_norm = _norm_of(weights, f"{prefix}output.LayerNorm", shape)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The layer's output for x (size, longest, width); the mask is added to the attention's scores."""
        size, length, width = x.shape
        split = self.query_key_value(x).view(size, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = self.attention_norm(self.attention_out(mixed.transpose(1, 2).reshape(size, length, width)) + x)
        normed: Tensor = self.output_norm(self.narrow(functional.gelu(self.widen(x))) + x)
        return normed


class EncoderModule(nn.Module):
    """Token ids and lengths in, unit vectors out."""

    def __init__(self, weights: Mapping[str, Tensor], shape: EncoderShape) -> None:
        """Take the weights under their published names; raises KeyError for one that is missing."""
        super().__init__()
        # Every text is a first segment, so that its row of the segment table belongs to each position.
        segment = weights["embeddings.token_type_embeddings.weight"][0]
        self.words = nn.Parameter(weights["embeddings.word_embeddings.weight"])
        self.positions = nn.Parameter(weights["embeddings.position_embeddings.weight"] + segment)
        self.norm = _norm_of(weights, "embeddings.LayerNorm", shape)
        self.layers = nn.ModuleList(
            EncoderLayer(weights, f"encoder.layer.{index}.", shape) for index in range(shape.layers)
        )

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Embed int ids (size, longest), of which `lengths` are real; the mean is taken in float32."""
        x = self.norm(functional.embedding(ids, self.words) + self.positions[: ids.shape[1]])
        real = torch.arange(ids.shape[1], device=ids.device) < lengths.unsqueeze(1)
        mask = torch.zeros(real.shape, dtype=x.dtype, device=x.device).masked_fill(~real, float("-inf"))
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        shares = real.to(torch.float32) / lengths.unsqueeze(1)
        return functional.normalize(torch.bmm(shares.unsqueeze(1), x.to(torch.float32)).squeeze(1), dim=1)


def _linear_of(weights: Mapping[str, Tensor], name: str) -> nn.Linear:
    return _linear(weights[f"{name}.weight"], weights[f"{name}.bias"])


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear


def _norm_of(weights: Mapping[str, Tensor], name: str, shape: EncoderShape) -> nn.LayerNorm:
    norm = nn.LayerNorm(weights[f"{name}.weight"].shape[0], eps=shape.norm_epsilon, device="meta")
    norm.weight, norm.bias = nn.Parameter(weights[f"{name}.weight"]), nn.Parameter(weights[f"{name}.bias"])
    return norm
