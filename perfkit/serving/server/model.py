"""What must a model offer to be served, and how is one found by name?

Only `predict` is required. The server calls `load` once per process, on the main thread, and the
rest from worker threads, several at once: a model that keeps state of its own guards it.

A child process that only runs preprocess and postprocess (placement = processes) calls `load_stages(seed)`
instead, where the model has it: tokenizers and the like, but no weights. Items and outputs that travel to
another process must be what multiprocessing can send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from perfkit.errors import PerfkitError
from perfkit.serving.devices.device import Device


class InputRefused(PerfkitError):
    """The model cannot use this input; the client gets 422 with the text, its batch mates are unharmed."""


class Collated(NamedTuple):
    """One call's input: what the model takes, and how much of it is padding.

    `units` counts the useful work (tokens, pixels, or simply requests) and `padded_units` what the
    call really computes, so that 1 - units / padded_units is the share wasted on padding.
    """

    inputs: Any
    size: int
    units: int
    padded_units: int
    nbytes: int = 0


class Model(Protocol):
    """A served model. Payloads are JSON values; items and outputs are the model's own.

    An attribute `signature` may say how payloads and answers look as tensors (signature.py), `payloads` may name
    a file of request bodies for the load generator, and `runs_on_cuda = True` says that `load` places the weights
    on the device, so that it may be put on a GPU unasked. `weights()` may return the arrays of which a copy of the
    model consists, which replicas need that do not all fit the device (resident.models). `network()` may give its
    torch module, for levels of execution other than the model's own (perfkit/serving/execution/network.py).
    """

    def load(self, device: Device, seed: int) -> None:
        """Read weights and put them on the device (`device.place`); runs once, before any worker starts."""

    def preprocess(self, payload: Any) -> Any:
        """One JSON payload to one item; raises InputRefused when the payload cannot be used."""

    def collate(self, items: Sequence[Any]) -> Collated:
        """The items of one batch as one input, padded where needed."""

    def predict(self, inputs: Any) -> Any:
        """Run the model on `Collated.inputs`; runs on the device, in a worker thread."""

    def split(self, outputs: Any, size: int) -> Sequence[Any]:
        """The outputs of one call as one output per request, in the batch's order."""

    def postprocess(self, output: Any) -> Any:
        """One output to a JSON-able value."""

    def example(self) -> Any:
        """A typical payload, used to warm every worker up; None = do without."""
