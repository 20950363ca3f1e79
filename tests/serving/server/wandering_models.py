"""Models for the tests of child processes: they tell where each of their steps ran."""

from __future__ import annotations

import os
import time

from lab_models import act


class Wanderer:
    """Tells in which process each step of a request ran; `{"hold": PATH}` waits in preprocess for PATH."""

    def preprocess(self, payload):
        act(payload, "preprocess")
        if isinstance(payload, dict) and "hold" in payload:
            open(payload["hold"] + ".held", "w").close()
            while not os.path.exists(payload["hold"]):
                time.sleep(0.002)
        if isinstance(payload, dict) and "burn" in payload:
            sum(range(payload["burn"]))
        return {"payload": payload, "preprocess": os.getpid()}

    def predict(self, inputs):
        return [{**item, "predict": os.getpid()} for item in inputs]

    def postprocess(self, output):
        act(output["payload"], "postprocess")
        if isinstance(output["payload"], dict) and output["payload"].get("do") == "return an object":
            return {"answer": object()}
        return {**output, "postprocess": os.getpid()}


class LoadsLess(Wanderer):
    """Says how it was loaded: whole, or what its stages need."""

    loaded = "not at all"

    def load(self, device, seed):
        self.loaded = "whole"

    def load_stages(self, seed):
        self.loaded = f"its stages, seed {seed}"

    def preprocess(self, payload):
        return self.loaded

    def predict(self, inputs):
        return [[item, self.loaded] for item in inputs]

    def postprocess(self, output):
        return [*output, self.loaded]


class FailsInAChild(Wanderer):
    """Loads in the server, but not in a process of its own."""

    def load_stages(self, seed):
        raise RuntimeError("no tokenizer")


class DiesInAChild(Wanderer):
    def load_stages(self, seed):
        os._exit(3)
