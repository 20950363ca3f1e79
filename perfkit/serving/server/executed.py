"""How is a model served at another level of execution than its own? Its network runs, its other steps stay.

The network's arguments are made in `collate`, so that padding to a bucket shows in the ledger as such.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device
from perfkit.serving.server.model import Collated, Model
from perfkit.serving.server.padding import Collate, collate_of
from perfkit.settings.execution import OWN_LEVEL
from perfkit.settings.queueing import BatchSettings
from perfkit.settings.server import ServerSettings

if TYPE_CHECKING:
    from perfkit.serving.execution.execution import Execution

_FURTHER = ("payloads", "signature", "load_stages", "weights")


def at_level(model: Model, settings: ServerSettings, device: Device) -> Model:
    """The loaded model at the level that is set: itself at its own; raises ConfigError when it has no network."""
    level = settings.execution.level
    if level == OWN_LEVEL:
        return model
    if getattr(model, "network", None) is None:
        raise ConfigError(
            f"execution.level is {level}, but model {settings.model} shows no torch network (a method network); "
            "set execution.level = own"
        )
    if level == "cuda_graph" and device.name.partition(":")[0] != "cuda":
        raise ConfigError(
            f"execution.level is cuda_graph on device {device.name}; only a cuda device has graphs "
            "(set device = cuda, or another level)"
        )
    return Executed(model, settings, device)


def get_ready(model: Model, settings: ServerSettings) -> None:
    """Have a model at a level ready for the shapes of a setting, before any worker of that setting starts.

    In one thread at a time. Raises TargetFailed or EnvironmentLacks when it cannot serve.
    """
    if isinstance(model, Executed):
        model.get_ready(settings)


def stats(model: Model, settings: ServerSettings) -> dict[str, Any]:
    """Level, type, and what was compared and compiled; nothing of that at the model's own level."""
    wanted = {"level": settings.execution.level, "dtype": settings.execution.dtype}
    found = model.execution.stats() if isinstance(model, Executed) else {}
    return wanted | {"difference": None, "graphs_ready": None, "graphs": None} | found


class Executed:
    """A model whose network runs at a level. Any number of threads may use it, as the model."""

    load: Callable[[Device, int], None]
    preprocess: Callable[[Any], Any]
    postprocess: Callable[[Any], Any]
    example: Callable[[], Any]

    def __init__(self, model: Model, settings: ServerSettings, device: Device) -> None:
        from perfkit.serving.execution.execution import Execution

        with device.loading():
            network = model.network()  # type: ignore[attr-defined]  # who asked has looked
            self.execution: Execution = Execution(network, settings.execution.level, settings.execution.dtype)
        if self.execution.is_static and network.longest and getattr(model, "collate_to", None) is None:
            raise ConfigError(
                f"execution.level is {settings.execution.level}, which pads rows to a length, but model "
                f"{settings.model} has no collate_to(items, buckets); set another level, such as aoti"
            )
        self._device = device
        self._model = model
        self.load, self.preprocess = model.load, model.preprocess
        self.postprocess, self.example = model.postprocess, model.example
        for name in _FURTHER:
            if (own := getattr(model, name, None)) is not None:
                setattr(self, name, own)

    def get_ready(self, settings: ServerSettings) -> None:
        """Prepare, compare and warm whatever the setting may bring; raises TargetFailed or EnvironmentLacks."""
        self._device.enter_worker(settings.intra_op_threads)
        try:
            with self._device.loading():
                shapes = self.execution.shapes(settings.batch.max_size, settings.batch.bucket_sizes)
                self.execution.get_ready(shapes, settings.intra_op_threads)
        finally:
            self._device.leave_worker()

    def collate(self, items: Sequence[Any]) -> Collated:
        """The items of one batch as the network's arguments, in the shape that they have."""
        return self._as_arguments(self._model.collate, (), items)

    def collate_for(self, batch: BatchSettings) -> Collate:
        """How a pipeline of these settings collates: to a bucket where the level needs one, else as the model does."""
        if not self.execution.is_static:
            return functools.partial(self._as_arguments, collate_of(self._model, batch), ())
        shapes = self.execution.shapes(batch.max_size, batch.bucket_sizes)
        own: Collate = self._model.collate
        if self.execution.network.longest:
            own = functools.partial(self._model.collate_to, buckets=shapes.lengths)  # type: ignore[attr-defined]
        return functools.partial(self._as_arguments, own, shapes.sizes)

    def _as_arguments(self, collate: Collate, sizes: Sequence[int], items: Sequence[Any]) -> Collated:
        """What `collate` makes, as the network's arguments, with rows up to the next of the sizes where there are."""
        collated = collate(items)
        arguments = self.execution.network.arguments(collated.inputs)
        rows = next((size for size in sizes if size >= collated.size), collated.size)
        if rows > collated.size:
            arguments = self.execution.with_rows(arguments, rows)
        return collated._replace(
            inputs=arguments,
            padded_units=collated.padded_units * rows // collated.size,
            nbytes=sum(one.nbytes for one in arguments),
        )

    def predict(self, inputs: Any) -> Any:
        """The network's outputs, padding rows included."""
        return self.execution.run(inputs)

    def split(self, outputs: Any, size: int) -> Sequence[Any]:
        """The outputs of one call as one output per request; padding rows are left out."""
        return self._model.split(outputs[:size], size)
