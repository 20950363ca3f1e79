"""How is a model served at another level of execution than its own? Its network runs, its other steps stay.

The network's arguments are made in `collate`, so that padding to a bucket shows in the ledger as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device
from perfkit.serving.server.model import Collated, Model
from perfkit.settings.execution import OWN_LEVEL
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
        self._device = device
        self._split = model.split
        self._lengths: Sequence[int] = ()
        self.load, self.preprocess = model.load, model.preprocess
        self.postprocess, self.example = model.postprocess, model.example
        for name in _FURTHER:
            if (own := getattr(model, name, None)) is not None:
                setattr(self, name, own)
        self._collate: Callable[[Sequence[Any]], Collated] = model.collate
        self._collate_to: Callable[..., Collated] | None = getattr(model, "collate_to", None)
        if self._collate_to is not None:
            self.collate_to = self._collate_with_buckets
        self._pads_rows_to_lengths = self.execution.is_static and network.longest > 0

    def get_ready(self, settings: ServerSettings) -> None:
        """Prepare, compare and warm whatever the setting may bring; raises TargetFailed or EnvironmentLacks."""
        self._device.enter_worker(settings.intra_op_threads)
        try:
            with self._device.loading():
                self._lengths = self.execution.get_ready(
                    settings.batch.max_size, settings.batch.bucket_sizes, settings.intra_op_threads
                )
        finally:
            self._device.leave_worker()

    def collate(self, items: Sequence[Any]) -> Collated:
        """The items of one batch as the network's arguments, in the shape of a bucket where the level needs one."""
        if self._pads_rows_to_lengths:
            return self._collate_with_buckets(items, self._lengths)
        return self._fit(self._collate(items))

    def _collate_with_buckets(self, items: Sequence[Any], buckets: Sequence[int]) -> Collated:
        assert self._collate_to is not None, "a model whose rows have a length can pad them"
        return self._fit(self._collate_to(items, self._lengths if self._pads_rows_to_lengths else buckets))

    def _fit(self, collated: Collated) -> Collated:
        arguments = self.execution.fit(self.execution.network.arguments(collated.inputs))
        rows = arguments[0].shape[0]
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
        return self._split(outputs[:size], size)
