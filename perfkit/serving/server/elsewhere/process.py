"""What does a child of the server do? It loads the model, says that it is ready, and answers calls until the pipe ends.

It has one thread, the main one: what the model does in it waits for no other thread's GIL.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from perfkit.errors import PerfkitError
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import Device, DeviceLost
from perfkit.serving.server.defaults import open_device
from perfkit.serving.server.elsewhere.batch_work import Batches
from perfkit.serving.server.elsewhere.child import ChildSpec, read_spec
from perfkit.serving.server.elsewhere.stage_work import Stages
from perfkit.serving.server.executed import at_level, get_ready
from perfkit.serving.server.model import Model
from perfkit.serving.server.padding import collate_of
from perfkit.serving.server.registry import create_model
from perfkit.serving.server.stages import describe
from perfkit.serving.server.warmup import warm_up

_log = logging.getLogger("perfkit.server")


Answer = Callable[[bytes], bytes]
"""What a child does with a call."""


def load(spec: ChildSpec) -> tuple[Answer, dict[str, Any]]:
    """Get ready for the calls that the spec is about; what answers them, and what holds in this process."""
    model = create_model(spec.settings.model)
    # Preprocess and postprocess have no use for a GPU, and a process pays for each one that it opens.
    device = open_device(spec.settings, model) if spec.warm_up_sizes else CpuDevice()
    answer = _load_model(spec, model, device) if spec.warm_up_sizes else _load_stages(spec, model, device)
    return answer, {"effective_threads": device.effective_threads(), "cpus": sorted(os.sched_getaffinity(0))}


def _load_model(spec: ChildSpec, model: Model, device: Device) -> Answer:
    with device.loading():
        model.load(device, spec.settings.seed)
    device.prepare(spec.intra_op_threads)
    os.nice(spec.settings.worker_nice)
    model = at_level(model, spec.settings, device)
    get_ready(model, spec.settings)
    lane = device.open_lane(worker="child", intra_op_threads=spec.intra_op_threads)
    collate = collate_of(model, spec.settings.batch)
    warm_up(model, collate, lane, spec.warm_up_sizes)
    return Batches(model, collate, lane, spec.settings.ledger.stamps).answer


def _load_stages(spec: ChildSpec, model: Model, device: Device) -> Answer:
    if (load_stages := getattr(model, "load_stages", None)) is not None:
        load_stages(spec.settings.seed)
    else:
        model.load(device, spec.settings.seed)
    device.prepare(spec.intra_op_threads)
    device.enter_worker(spec.intra_op_threads)
    if (example := model.example()) is not None:
        model.preprocess(example)  # the first call of anything is slow: nobody should wait for this one
    return Stages(model, spec.settings.ledger.stamps).answer


def serve(spec: ChildSpec, pipe: Connection[Any, Any]) -> int:
    """Load, say so, and answer until the pipe ends; returns the exit code."""
    try:
        answer, facts = load(spec)
    except BaseException as error:
        reason = describe(error) if isinstance(error, PerfkitError) else f"{type(error).__name__}: {describe(error)}"
        pipe.send_bytes(json.dumps({"error": reason}).encode())
        return 1
    gc.collect()
    gc.freeze()  # as in the server: what is loaded lives as long as the process
    pipe.send_bytes(json.dumps(facts).encode())
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            return 0
        try:
            reply = answer(message)
        except DeviceLost as error:  # only a new process helps
            _log.error("%s", describe(error))
            return DeviceLost.exit_code
        pipe.send_bytes(reply)


def main(spec_text: str, pipe_number: str) -> int:
    """Run from a spec in JSON and the number of an open socket."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    spec = read_spec(spec_text)
    if spec.cpus:
        os.sched_setaffinity(0, spec.cpus)
    return serve(spec, Connection(int(pipe_number)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
