"""Models for the tests of child processes: they tell where each of their steps ran."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import types

from lab_models import act

from perfkit.serving.server.model import Collated


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


class Counting:
    """Adds up; tells process, load and batch. Payload 13 kills its process, "raise" raises, `{"hold": PATH}` waits."""

    loads = 0

    def load(self, device, seed):
        Counting.loads += 1

    def predict(self, inputs):
        for item in inputs:
            if item == 13:
                os._exit(13)
            if item == "raise":
                raise ValueError("told to fail")
            if item == "exit":
                sys.exit(4)
            if isinstance(item, dict) and "hold" in item:
                open(item["hold"] + ".held", "w").close()
                while not os.path.exists(item["hold"]):
                    time.sleep(0.002)
        return [{"pid": os.getpid(), "loads": Counting.loads, "batch": len(inputs), "echo": item} for item in inputs]


class TellsThreads(Counting):
    """Answers with the threads that a call of torch may use, where it runs."""

    def load(self, device, seed):
        import torch

        self.torch = torch

    def predict(self, inputs):
        return [self.torch.get_num_threads() for _ in inputs]

    def example(self):
        return 1


class TellsThreadsOfAStandIn(TellsThreads):
    """The same with a library that is there at once, and has torch's habit of a limit for each thread."""

    def load(self, device, seed):
        limit = threading.local()
        self.torch = sys.modules["torch"] = types.ModuleType("torch")
        self.torch.set_num_threads = lambda number: setattr(limit, "number", number)
        self.torch.get_num_threads = lambda: getattr(limit, "number", 64)
        self.torch.inference_mode = contextlib.nullcontext


class CollatesSlowly(Counting):
    """Takes as long to collate as its items say: `{"collate_s": SECONDS}`."""

    def collate(self, items):
        time.sleep(sum(item["collate_s"] for item in items if isinstance(item, dict)))
        return Collated(inputs=items, size=len(items), units=len(items), padded_units=len(items))
