"""Models for the server's tests: they do what the payload says, in the stage that it names.

A payload is `{"at": STAGE, "do": DEED}`; `{"gate": PATH}` makes predict wait until the file is there.
"""

from __future__ import annotations

import os
import sys
import time

from perfkit.serving.server.model import Collated, InputRefused


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
