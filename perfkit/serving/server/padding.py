"""How are the items of a batch brought to one length? As the model does it by itself, or up to fixed lengths.

To the longest item wastes least. Buckets waste more and give the model few different shapes, which pays
where each new shape costs a compilation, a plan or a cache of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from perfkit.errors import ConfigError
from perfkit.serving.server.model import Collated, Model
from perfkit.settings.queueing import BatchSettings

Collate = Callable[[Sequence[Any]], Collated]


def collate_of(model: Model, batch: BatchSettings) -> Collate:
    """The model's `collate`, or its `collate_to` with the buckets; raises ConfigError when it has no such step.

    A model at another level of execution than its own has its own answer.
    """
    collate_for: Callable[[BatchSettings], Collate] | None = getattr(model, "collate_for", None)
    if collate_for is not None:
        return collate_for(batch)
    if batch.padding == "longest":
        return model.collate
    collate_to: Callable[..., Collated] | None = getattr(model, "collate_to", None)
    if collate_to is None:
        name = type(model).__name__
        raise ConfigError(f"batch.padding is buckets, but {name} has no collate_to(items, buckets); use longest")
    return functools.partial(collate_to, buckets=batch.bucket_sizes)
