"""Models for the promises' tests: each shows from outside what the server did with a request."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.server.model import Collated
from perfkit.serving.server.signature import ANY, Signature, TensorSpec


class Witness:
    """Answers after 1 ms, and writes one byte a request into the file that PERFKIT_WITNESS names."""

    def load(self, device, seed):
        self._file = os.open(os.environ["PERFKIT_WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def preprocess(self, payload):
        os.write(self._file, b".")
        return payload

    def collate(self, items):
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items))

    def predict(self, inputs):
        time.sleep(0.001)
        return inputs

    def split(self, outputs, size):
        return outputs

    def postprocess(self, output):
        return output

    def example(self):
        return 0


class Gated:
    """Loads, warms up and predicts only when `load`, `warm` and `work` lie in the folder PERFKIT_GATES.

    It leaves `load.awaited` and so on there when it has come so far.
    """

    def load(self, device, seed):
        _await("load")

    def predict(self, inputs):
        if inputs == ["warm"]:
            _await("warm")
        elif "wait" in inputs:
            _await("work")
        return inputs

    def example(self):
        return "warm"


def _await(name):
    gate = Path(os.environ["PERFKIT_GATES"], name)
    gate.with_suffix(".awaited").touch()
    while not gate.exists():
        time.sleep(0.002)


class Leaky:
    """Echoes, and keeps 1 KB of every request that says so: what a soak test must notice."""

    def __init__(self):
        self._kept = []

    def predict(self, inputs):
        self._kept.extend(bytearray(1024) for item in inputs if item == "leak")
        return inputs

    def example(self):
        return "no leak"


class Tensors:
    """Takes two tensors or any document, and always answers the same two numbers."""

    signature = Signature(
        inputs=(
            TensorSpec(name="numbers", datatype="FP32", shape=(2,)),
            TensorSpec(name="texts", datatype="BYTES", shape=(ANY,)),
        ),
        outputs=(TensorSpec(name="scores", datatype="FP32", shape=(2,)),),
        to_payload=lambda row: {"numbers": row["numbers"].tolist(), "texts": [bytes(text) for text in row["texts"]]},
        to_tensors=lambda answer: {"scores": answer},
    )

    def predict(self, inputs):
        return [[0.25, 0.75]] * len(inputs)

    def example(self):
        return 0


class Slow:
    """Answers after 5 ms: 200 requests a second on one worker."""

    def predict(self, inputs):
        time.sleep(0.005)
        return inputs

    def example(self):
        return 0


class Deadly:
    """Takes 5 ms a call, and writes down which request was in predict: payloads are numbers."""

    def load(self, device, seed):
        self._file = os.open(os.environ["PERFKIT_WITNESS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def predict(self, inputs):
        entered_ns = time.monotonic_ns()
        os.write(self._file, "".join(f"{number} {entered_ns}\n" for number in inputs).encode())
        time.sleep(0.005)
        return inputs


class Lingering:
    """Echoes, and takes its time in every stage, so that clients can leave in each."""

    def load(self, device, seed):
        pass

    def preprocess(self, payload):
        time.sleep(0.0002)
        return payload

    def collate(self, items):
        time.sleep(0.0002)
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items))

    def predict(self, inputs):
        time.sleep(0.001)
        return inputs

    def split(self, outputs, size):
        return outputs

    def postprocess(self, output):
        time.sleep(0.0002)
        return output

    def example(self):
        return 0


class Losing:
    """Takes a moment to load, echoes, and loses its device when it is told to."""

    def load(self, device, seed):
        time.sleep(0.2)

    def predict(self, inputs):
        time.sleep(0.001)
        if "lose" in inputs:
            raise DeviceLost("the card has fallen off the bus")
        return inputs

    def example(self):
        return 1


class Fragile:
    """Echoes on a device whose own code fails after a call that says so; the thread that called it dies."""

    def load(self, device, seed):
        self._told = threading.local()
        device.synchronize = self._synchronize

    def predict(self, inputs):
        self._told.to_die = "die" in inputs
        return inputs

    def example(self):
        return 1

    def _synchronize(self, event):
        if self._told.to_die:
            raise KeyError("a bug in the device's code")
