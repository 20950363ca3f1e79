"""How does a worker get the slow first calls behind it before anybody waits for them?"""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.serving.devices.device import Device
from perfkit.serving.devices.lane import Lane
from perfkit.serving.server.model import Model
from perfkit.serving.server.padding import Collate


def warm_up_sizes(device: Device, most: int) -> tuple[int, ...]:
    """The sizes of the calls with which a worker starts; ascending.

    A simulated device has nothing to warm, and its time is real time. A device with memory of its own keeps blocks
    by size for each stream: the worker that has met every power of two finds memory for whatever comes.
    """
    if device.is_simulated:
        return ()
    steps = [1 << step for step in range(most.bit_length())] if device.has_copies else [1]
    return tuple(sorted({*steps, most}))


def warm_up(model: Model, collate: Collate, lane: Lane, sizes: Sequence[int]) -> None:
    """Call the model with its own example at the sizes that it will see; raises what the model raises."""
    example = model.example() if sizes else None
    if example is None:
        return
    for size in sizes:
        items = [model.preprocess(example) for _ in range(size)]
        outputs, _ = lane.run(model.predict, collate(items))
        model.postprocess(model.split(outputs, size)[0])
