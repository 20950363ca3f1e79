"""What does a served model look like that only spends simulated time, as a preset says?

Preprocess and postprocess do the preset's host work, predict its host and device work per call.
Any JSON payload will do; the output says that it is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device
from perfkit.serving.devices.simulated.device import SimulatedDevice
from perfkit.serving.devices.simulated.presence import Visit
from perfkit.serving.devices.simulated.preset import load_preset
from perfkit.serving.server.model import Collated
from perfkit.serving.server.signature import Signature, TensorSpec, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """The outputs of one call, before they are split: who was in it, and how large they would be."""

    visits: tuple[Visit, ...]
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One request's output: its stay in the service, and how many shared its call."""

    visit: Visit
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedWeights:
    """What a copy of the weights would take."""

    nbytes: int


class SimulatedModel:
    """A preset behind the model protocol; it runs on the simulated device only."""

    payloads: ClassVar[str] = "texts/short.jsonl"
    signature: ClassVar[Signature] = Signature(
        inputs=(TensorSpec(name="text", datatype="BYTES", shape=(1,)),),
        outputs=(
            TensorSpec(name="simulated", datatype="BOOL", shape=(1,)),
            TensorSpec(name="preset", datatype="BYTES", shape=(1,)),
            TensorSpec(name="size", datatype="INT32", shape=(1,)),
        ),
        to_payload=lambda row: text_of(row["text"][0]),
        to_tensors=lambda answer: {name: [value] for name, value in answer.items()},
    )

    def __init__(self, preset_name: str) -> None:
        self.preset = load_preset(preset_name)

    def load(self, device: Device, seed: int) -> None:
        """Take the device, which was seeded when opened; raises ConfigError unless it plays this preset."""
        if not isinstance(device, SimulatedDevice) or device.preset.name != self.preset.name:
            raise ConfigError(
                f"device {device.name} does not play {self.preset.name}; use the simulated device of that preset"
            )
        self._device = device

    def weights(self) -> list[SimulatedWeights]:
        """As many bytes as the preset says, in one piece that holds none."""
        return [SimulatedWeights(nbytes=self.preset.device.weights_bytes)]

    def preprocess(self, payload: Any) -> Visit:
        """The preset's host work before the model; the request now counts as in the service."""
        visit = self._device.enter()
        self._device.work(self.preset.service.preprocess)
        return visit

    def collate(self, items: Sequence[Visit]) -> Collated:
        """The batch, as large as the preset says that inputs are."""
        size = len(items)
        nbytes = size * self.preset.device.input_bytes
        return Collated(inputs=tuple(items), size=size, units=size, padded_units=size, nbytes=nbytes)

    def predict(self, inputs: tuple[Visit, ...]) -> Placeholder:
        """The preset's host and device work of one call."""
        self._device.launch(self.preset.service.predict, len(inputs))
        return Placeholder(visits=inputs, nbytes=len(inputs) * self.preset.device.output_bytes)

    def split(self, outputs: Placeholder, size: int) -> list[Placed]:
        """One output for each request of the call."""
        return [Placed(visit=visit, size=size) for visit in outputs.visits]

    def postprocess(self, output: Placed) -> dict[str, Any]:
        """The preset's host work after the model; says that it is simulated."""
        self._device.work(self.preset.service.postprocess)
        output.visit.leave()
        return {"simulated": True, "preset": self.preset.name, "size": output.size}

    def example(self) -> str:
        """Any JSON will do as a payload."""
        return "simulated"
