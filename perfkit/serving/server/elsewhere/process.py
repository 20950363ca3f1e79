"""What does a child of the server do? It loads the model, says that it is ready, and answers calls until the pipe ends.

It has one thread, the main one: what the model does in it waits for no other thread's GIL.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from perfkit import fields
from perfkit.clock import REAL_CLOCK, thread_cpu_ns
from perfkit.errors import PerfkitError
from perfkit.serving.server.defaults import open_device, settings_for
from perfkit.serving.server.elsewhere.child import ChildSpec
from perfkit.serving.server.elsewhere.messages import DONE, FAILED, POSTPROCESS, PREPROCESS, REFUSED, TO_JSON, Reply
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.job import to_json
from perfkit.serving.server.model import InputRefused, Model
from perfkit.serving.server.registry import create_model
from perfkit.serving.server.stages import describe


@dataclasses.dataclass(slots=True)
class Instants:
    """When one call's parts were over, and the CPU time of the model's own code; 0 = did not happen."""

    reached_ns: int = 0
    ended_ns: int = 0
    serialised_ns: int = 0
    cpu_ns: int = 0


class Stages:
    """Preprocess and postprocess of a model, for calls that come as bytes."""

    def __init__(self, model: Model, stamps: bool) -> None:
        self._steps = {PREPROCESS: self._preprocess, POSTPROCESS: self._postprocess, TO_JSON: self._write_json}
        self._model = model
        self._thread_id = threading.get_native_id()
        self._now_ns: Callable[[], int] = REAL_CLOCK.now_ns if stamps else _no_time
        self._cpu_ns: Callable[[], int] = thread_cpu_ns if stamps else _no_time

    def answer(self, message: bytes) -> bytes:
        """One call's reply; whatever the model raises becomes one."""
        instants = Instants()
        try:
            verdict, body = DONE, self._steps[message[:1]](message[1:], instants)
        except BaseException as error:  # a model's sys.exit() must not end the child
            verdict = REFUSED if isinstance(error, InputRefused) else FAILED
            body = f"{describe(error)}\0{type(error).__name__}".encode("utf-8", "replace")
        return Reply(
            verdict=verdict,
            reached_ns=instants.reached_ns,
            ended_ns=instants.ended_ns,
            serialised_ns=instants.serialised_ns,
            cpu_ns=instants.cpu_ns,
            thread_id=self._thread_id,
            body=body,
        ).to_bytes()

    def _preprocess(self, data: bytes, instants: Instants) -> bytes:
        return pack(self._timed(self._model.preprocess, unpack(data), instants))

    def _postprocess(self, data: bytes, instants: Instants) -> bytes:
        return pack(self._timed(self._model.postprocess, unpack(data), instants))

    def _write_json(self, data: bytes, instants: Instants) -> bytes:
        body = to_json(self._timed(self._model.postprocess, unpack(data), instants))
        instants.serialised_ns = self._now_ns()
        return body

    def _timed(self, step: Callable[[Any], Any], value: Any, instants: Instants) -> Any:
        instants.reached_ns, began_ns = self._now_ns(), self._cpu_ns()
        try:
            return step(value)
        finally:
            instants.cpu_ns = self._cpu_ns() - began_ns
            instants.ended_ns = self._now_ns()


def _no_time() -> int:
    return 0


def load(spec: ChildSpec) -> tuple[Stages, dict[str, Any]]:
    """The model with what its pre- and postprocess need (all of it, unless it can load less), and what holds here."""
    settings = fields.replace(settings_for(spec.model, {}), {"device": spec.device, "seed": spec.seed})
    device = open_device(settings)
    model = create_model(spec.model)
    if (load_stages := getattr(model, "load_stages", None)) is not None:
        load_stages(spec.seed)
    else:
        model.load(device, spec.seed)
    device.prepare(spec.intra_op_threads)
    device.enter_worker(spec.intra_op_threads)
    if (example := model.example()) is not None:
        model.preprocess(example)  # the first call of anything is slow: nobody should wait for this one
    facts = {"effective_threads": device.effective_threads(), "cpus": sorted(os.sched_getaffinity(0))}
    return Stages(model, spec.stamps), facts


def serve(spec: ChildSpec, pipe: Connection[Any, Any]) -> int:
    """Load, say so, and answer until the pipe ends; returns the exit code."""
    try:
        stages, facts = load(spec)
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
        pipe.send_bytes(stages.answer(message))


def main(spec_text: str, pipe_number: str) -> int:
    """Run from a spec in JSON and the number of an open socket."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    values = json.loads(spec_text)
    cpus = values.pop("cpus")
    if cpus:
        os.sched_setaffinity(0, cpus)
    return serve(ChildSpec(**values, cpus=tuple(cpus) if cpus else None), Connection(int(pipe_number)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
