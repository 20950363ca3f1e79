"""Models for the server's tests: they do what the payload says, in the stage that it names.

A payload is `{"at": STAGE, "do": DEED}`; `{"gate": PATH}` makes predict wait until the file is there.
"""

from __future__ import annotations

import os
import sys
import time

from perfkit.serving.server.model import Collated, InputRefused
from perfkit.serving.server.signature import Signature, TensorSpec


def act(payload, stage):
    """Do what the payload says when this is the stage that it names."""
    if not isinstance(payload, dict) or payload.get("at") != stage:
        return
    if payload["do"] == "raise":
        raise ValueError(f"told to fail in {stage}")
    if payload["do"] == "refuse":
        raise InputRefused(f"told to refuse in {stage}")
    if payload["do"] == "exit":
        sys.exit(9)
    if payload["do"] == "mumble":
        raise Mumble


class Mumble(Exception):
    """An error that cannot even say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


def _gate(item):
    while isinstance(item, dict) and "gate" in item and not os.path.exists(item["gate"]):
        time.sleep(0.002)


class Probe:
    """Echoes the payload with how often the model was loaded, and with how many it shared its call."""

    loads = 0

    def load(self, device, seed):
        Probe.loads += 1

    def preprocess(self, payload):
        act(payload, "preprocess")
        return payload

    def collate(self, items):
        for item in items:
            act(item, "collate")
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items))

    def predict(self, inputs):
        for item in inputs:
            _gate(item)
            act(item, "predict")
            if isinstance(item, dict) and "sleep_s" in item:
                time.sleep(item["sleep_s"])
        return [{"echo": item, "batch": len(inputs), "loads": Probe.loads} for item in inputs]

    def split(self, outputs, size):
        for output in outputs:
            act(output["echo"], "split")
        short = any(isinstance(output["echo"], dict) and output["echo"].get("do") == "drop" for output in outputs)
        return outputs[:-1] if short else outputs

    def postprocess(self, output):
        act(output["echo"], "postprocess")
        if isinstance(output["echo"], dict) and output["echo"].get("do") == "return an object":
            return {"answer": object()}
        return output

    def example(self):
        return {}


class OnlyPredict:
    """The least that can be served; it would fail on anything but texts."""

    def predict(self, inputs):
        return [text.upper() for text in inputs]


class NeedsArgument:
    def __init__(self, size):
        self.size = size

    def predict(self, inputs):
        return inputs


class FailsInLoad(OnlyPredict):
    def load(self, device, seed):
        raise RuntimeError("no weights\nanywhere")


class FailsWhenMade(OnlyPredict):
    def __init__(self):
        raise RuntimeError("not today")


class FailsInWarmUp(OnlyPredict):
    def example(self):
        return 3


class ExitsInWarmUp(OnlyPredict):
    def predict(self, inputs):
        sys.exit(5)

    def example(self):
        return "x"


class PredictsNothing:
    pass


class FailsOnPairs(OnlyPredict):
    def predict(self, inputs):
        if len(inputs) > 1:
            raise ValueError("no pairs")
        return super().predict(inputs)

    def example(self):
        return "x"


class Tunable:
    def __init__(self, factor=2):
        self.factor = factor

    def predict(self, inputs):
        return [self.factor * item for item in inputs]


class Mortal(OnlyPredict):
    """Ends its process with the exit code that it is told, at once."""

    def predict(self, inputs):
        for text in inputs:
            if text.startswith("exit "):
                os._exit(int(text.split()[1]))
        return super().predict(inputs)


def _pair_of(row):
    numbers, name = row["numbers"].tolist(), row["name"][0].decode()
    if name == "raise":
        raise ValueError("told to fail")
    return [numbers, name]


def _pair_to_tensors(answer):
    total = answer["sum"]
    return {"sum": [total, total] if answer["label"] == "wrong!" else [total], "label": [answer["label"]]}


class Pair:
    """Two tensors in, two out: adds two numbers and puts an exclamation mark after a name."""

    signature = Signature(
        inputs=(
            TensorSpec(name="numbers", datatype="INT32", shape=(2,)),
            TensorSpec(name="name", datatype="BYTES", shape=(1,)),
        ),
        outputs=(
            TensorSpec(name="sum", datatype="INT64", shape=(1,)),
            TensorSpec(name="label", datatype="BYTES", shape=(1,)),
        ),
        to_payload=_pair_of,
        to_tensors=_pair_to_tensors,
    )

    def preprocess(self, payload):
        if min(payload[0]) < 0:
            raise InputRefused("no negative numbers")
        return payload

    def predict(self, inputs):
        for _, name in inputs:
            if name.startswith("gate:"):
                _gate({"gate": name.removeprefix("gate:")})
        return [{"sum": sum(numbers), "label": f"{name}!"} for numbers, name in inputs]
