"""How do the untrained models draw their weights: from the seed alone, and without touching torch's own randomness?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor


def seeded_generator(seed: int) -> Generator:
    """A source of its own, so that loading a model leaves the process-wide one where it was."""
    return Generator().manual_seed(seed)


def uniform(shape: Sequence[int], limit: float, generator: Generator) -> Tensor:
    """Float32 weights spread evenly between -limit and limit."""
    return torch.empty(tuple(shape)).uniform_(-limit, limit, generator=generator)


def normal(shape: Sequence[int], deviation: float, generator: Generator) -> Tensor:
    """Float32 weights of a normal distribution around zero."""
    return torch.empty(tuple(shape)).normal_(0.0, deviation, generator=generator)
