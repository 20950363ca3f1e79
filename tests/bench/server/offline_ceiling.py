"""How many rows a second does the MLP alone compute, on one thread, nothing around it? SIZE SECONDS"""

import json
import sys

import torch

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.serving.devices.cpu import CpuDevice
from sample_models.mlp import Mlp

WARM_UP_CALLS = 10


def measure(size, seconds):
    """Items per second of back-to-back calls."""
    torch.set_num_threads(1)
    model = Mlp()
    model.load(CpuDevice(), 0)
    inputs = model.collate([model.preprocess(model.example())] * size).inputs
    for _ in range(WARM_UP_CALLS):
        model.predict(inputs)
    calls, started_ns = 0, REAL_CLOCK.now_ns()
    while REAL_CLOCK.now_ns() - started_ns < seconds * NS_PER_S:
        model.predict(inputs)
        calls += 1
    return calls * size * NS_PER_S / (REAL_CLOCK.now_ns() - started_ns)


if __name__ == "__main__":
    print(json.dumps({"items_per_s": measure(int(sys.argv[1]), float(sys.argv[2]))}))
