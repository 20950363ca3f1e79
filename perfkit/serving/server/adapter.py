"""How can a user's class with nothing but `predict` be served?

The missing steps get the plainest meaning: items are the payloads, a batch is the list of them, and
outputs come as a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device
from perfkit.serving.server.model import Collated, Model

_STEPS = ("load", "preprocess", "collate", "predict", "split", "postprocess", "example")
# What a model may offer, and does without.
_FURTHER = ("payloads", "signature", "runs_on_cuda", "collate_to", "load_stages", "weights", "network")


class _Plain:
    """Fills the gaps of a user's model: every step that the model lacks is the identity."""

    def __init__(self, model: Any) -> None:
        for step in (*_STEPS, *_FURTHER):
            own = getattr(model, step, None)
            if own is not None:
                setattr(self, step, own)

    def load(self, device: Device, seed: int) -> None:
        return None

    def preprocess(self, payload: Any) -> Any:
        return payload

    def collate(self, items: Sequence[Any]) -> Collated:
        return Collated(inputs=list(items), size=len(items), units=len(items), padded_units=len(items))

    def predict(self, inputs: Any) -> Any:
        raise AssertionError("complete() refuses a model without predict")

    def split(self, outputs: Any, size: int) -> Sequence[Any]:
        return list(outputs)

    def postprocess(self, output: Any) -> Any:
        return output

    def example(self) -> Any:
        return None  # nothing is known of its payloads, so it is not warmed up


def complete(model: Any) -> Model:
    """The model itself when it offers every step, else one with the gaps filled; raises ConfigError."""
    if not callable(getattr(model, "predict", None)):
        raise ConfigError(f"{type(model).__name__} has no predict(inputs); a model needs at least that")
    if all(callable(getattr(model, step, None)) for step in _STEPS):
        return model  # type: ignore[no-any-return]
    return _Plain(model)
