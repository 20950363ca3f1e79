"""How does a child answer a call for preprocess or postprocess?"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from perfkit.clock import REAL_CLOCK, thread_cpu_ns
from perfkit.serving.server.elsewhere.messages import DONE, POSTPROCESS, PREPROCESS, TO_JSON, Reply, failure_of
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.job import to_json
from perfkit.serving.server.model import Model


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
            verdict, body = failure_of(error)
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
