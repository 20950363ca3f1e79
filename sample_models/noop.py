"""What does the service itself cost? A model that computes nothing answers that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from perfkit.serving.server.model import Collated
from perfkit.serving.server.signature import Signature, TensorSpec

if TYPE_CHECKING:
    from perfkit.serving.devices.device import Device

_ANSWER = [0.25, 0.25, 0.25, 0.25]


class Noop:
    """Any JSON value in, the same four floats out. Imports neither torch nor numpy, and keeps no state."""

    payloads: ClassVar[str] = "numbers/noop.jsonl"
    signature: ClassVar[Signature] = Signature(
        inputs=(TensorSpec(name="numbers", datatype="FP32", shape=(64,)),),
        outputs=(TensorSpec(name="answer", datatype="FP32", shape=(4,)),),
        to_payload=lambda row: row["numbers"].tolist(),
        to_tensors=lambda answer: {"answer": answer},
    )

    def load(self, device: Device, seed: int) -> None:
        """There is nothing to load."""

    def preprocess(self, payload: Any) -> Any:
        """The payload as it came."""
        return payload

    def collate(self, items: Sequence[Any]) -> Collated:
        """The items as they came; a request is the unit of work."""
        size = len(items)
        return Collated(inputs=items, size=size, units=size, padded_units=size)

    def predict(self, inputs: Sequence[Any]) -> list[list[float]]:
        """The same answer for each item."""
        return [_ANSWER] * len(inputs)

    def split(self, outputs: list[list[float]], size: int) -> list[list[float]]:
        """One answer a request."""
        return outputs

    def postprocess(self, output: list[float]) -> list[float]:
        """The answer as it is."""
        return output

    def example(self) -> list[float]:
        """As many numbers as the MLP takes, so that both cost the same to parse."""
        return [0.5] * 64
