"""How does a worker get the slow first calls behind it before anybody waits for them?"""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.serving.devices.lane import Lane
from perfkit.serving.server.model import Model
from perfkit.serving.server.padding import Collate


def warm_up(model: Model, collate: Collate, lane: Lane, sizes: Sequence[int]) -> None:
    """Call the model with its own example at the sizes that it will see; raises what the model raises."""
    example = model.example() if sizes else None
    if example is None:
        return
    for size in sizes:
        items = [model.preprocess(example) for _ in range(size)]
        outputs, _ = lane.run(model.predict, collate(items))
        model.postprocess(model.split(outputs, size)[0])
