"""How does a child carry a batch through its own copy of the model?"""

from __future__ import annotations

import threading
from typing import Any

from perfkit.clock import REAL_CLOCK, thread_cpu_ns
from perfkit.serving.devices.device import DeviceLost, OutOfDeviceMemory
from perfkit.serving.devices.lane import Lane
from perfkit.serving.server.elsewhere.messages import (
    BATCH_HEAD_BYTES,
    DONE,
    LATE,
    BatchReply,
    failure_of,
    read_batch_call,
    read_batch_reply,
)
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.model import Model
from perfkit.serving.server.padding import Collate

_NEVER = read_batch_reply(bytes(BATCH_HEAD_BYTES))


class Batches:
    """The model behind calls that come as bytes: items in, outputs out, nothing of requests."""

    def __init__(self, model: Model, collate: Collate, lane: Lane, stamps: bool) -> None:
        self._model = model
        self._collate = collate
        self._lane = lane
        self._stamps = stamps
        self._thread_id = threading.get_native_id()
        self._now_ns = REAL_CLOCK.now_ns

    def answer(self, message: bytes) -> bytes:
        """One batch's reply; whatever the model raises becomes one. Raises DeviceLost."""
        reply = _NEVER._replace(thread_id=self._thread_id)
        try:
            deadline_ns, items = read_batch_call(message)
            reply = self._run(unpack(items), deadline_ns, reply)
        except DeviceLost:
            raise
        except BaseException as error:  # a model's sys.exit() must not end the child
            verdict, body = failure_of(error)
            reply = reply._replace(verdict=verdict, body=body)
            is_out_of_memory = isinstance(error, OutOfDeviceMemory)
        else:
            is_out_of_memory = False
        if is_out_of_memory:  # outside of `except`, where the error's frames would hold what is to be given back
            self._lane.release_cache()
        return (reply if self._stamps else self._unstamped(reply)).to_bytes()

    def _run(self, items: list[Any], deadline_ns: int, reply: BatchReply) -> BatchReply:
        now_ns, model = self._now_ns, self._model
        reached_ns, began_ns = now_ns(), thread_cpu_ns()
        collated = self._collate(items)
        collated_ns = now_ns()
        if deadline_ns and collated_ns >= deadline_ns:
            return reply._replace(verdict=LATE, reached_ns=reached_ns, collated_ns=collated_ns)
        outputs, instants = self._lane.run(model.predict, collated)
        woken_ns, cpu_ns = now_ns(), thread_cpu_ns() - began_ns
        split = list(model.split(outputs, len(items)))
        if len(split) != len(items):
            raise RuntimeError(f"the model gave {len(split)} outputs for {len(items)} inputs; it must give one each")
        return reply._replace(
            verdict=DONE,
            units=collated.units,
            padded_units=collated.padded_units,
            cpu_ns=cpu_ns,
            reached_ns=reached_ns,
            collated_ns=collated_ns,
            woken_ns=woken_ns,
            body=pack(split),
            **instants._asdict(),
        )

    def _unstamped(self, reply: BatchReply) -> BatchReply:
        return _NEVER._replace(
            verdict=reply.verdict,
            thread_id=reply.thread_id,
            units=reply.units,
            padded_units=reply.padded_units,
            body=reply.body,
        )
