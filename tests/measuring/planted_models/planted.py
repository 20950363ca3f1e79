"""Models that misbehave on purpose, for services started by tests."""

from __future__ import annotations

import os
import threading

from perfkit.serving.devices.device import OutOfDeviceMemory

print("imported", flush=True)


class Chatty:
    """Prints more than a pipe holds, and a line that looks a little like the ready line."""

    def load(self, device, seed):
        print('{"url": "http://nowhere"}', flush=True)

    def predict(self, inputs):
        print("x" * 100_000, flush=True)
        return inputs


class Unloadable:
    """Cannot load."""

    def load(self, device, seed):
        raise RuntimeError("the weights are\nnot there")

    def predict(self, inputs):
        return inputs


class Stalled:
    """Never answers the second input."""

    def __init__(self):
        self._seen = 0

    def predict(self, inputs):
        self._seen += 1
        if self._seen > 1:
            threading.Event().wait(20)
        return inputs


class Fatal:
    """Takes its process down with the twentieth input."""

    def __init__(self):
        self._seen = 0

    def predict(self, inputs):
        self._seen += 1
        if self._seen >= 20:
            os._exit(9)
        return inputs


class Faulty:
    """Refuses nothing, fails every third input."""

    def __init__(self):
        self._seen = 0

    def predict(self, inputs):
        self._seen += 1
        if self._seen % 3 == 0:
            raise ValueError("every third")
        return inputs


class LosesDevice:
    """Ends its process as a lost device does, once, when the file that PLANTED_LOSS names is there."""

    def predict(self, inputs):
        try:
            os.remove(os.environ["PLANTED_LOSS"])
        except FileNotFoundError:
            return inputs
        os._exit(70)


class Remembers:
    """Takes nine milliseconds for an input, and six for the one that it saw last."""

    def __init__(self):
        self._last = None

    def predict(self, inputs):
        for one in inputs:
            threading.Event().wait(0.006 if one == self._last else 0.009)
            self._last = one
        return inputs


class Hungry:
    """Its device has room for two at once."""

    def predict(self, inputs):
        if len(inputs) > 2:
            raise OutOfDeviceMemory(f"no room for {len(inputs)}")
        return inputs
