"""How does a batch get through a model that lives in another process?

As in `batch_run`, poison isolation included; only the call itself is another: items travel to the child,
which collates, computes and splits, and outputs travel back. A child that dies takes its whole batch
with it: tried again, the same request would kill the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfkit.records import EndState
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.server.batch_run import BatchRunner, Tools
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.elsewhere.child import ChildDied
from perfkit.serving.server.elsewhere.messages import (
    DONE,
    LATE,
    REFUSED,
    BatchReply,
    batch_call,
    read_batch_reply,
    read_failure,
)
from perfkit.serving.server.elsewhere.outpost import Outpost
from perfkit.serving.server.elsewhere.packing import pack, unpack
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import InputRefused
from perfkit.serving.server.stages import ModelRaised
from perfkit.serving.server.station import Bench, Station


class RemoteRunner(BatchRunner):
    """A worker's way through the model of its own child."""

    def __init__(self, bench: Tools, outpost: Outpost) -> None:
        super().__init__(bench, None)
        self._outpost = outpost

    def _call(self, jobs: Sequence[Job], row: int, cpu: CpuLap) -> tuple[Sequence[Job], Sequence[Any]]:
        reply = self._ask(jobs, row)
        while reply.verdict == LATE:
            jobs = self._wanted(jobs)
            self._batches.cells[row + c.B_SIZE] = len(jobs)
            if not jobs:
                return [], []
            reply = self._ask(jobs, row)
        if reply.verdict != DONE:
            raise _error_of(reply)
        outputs = unpack(reply.body)
        self._batches.cells[row + c.B_MODEL_RETURNED] = self._batches.now_ns()
        return jobs, outputs

    def _ask(self, jobs: Sequence[Job], row: int) -> BatchReply:
        nearest_ns = min((job.deadline_ns for job in jobs if job.deadline_ns), default=0)
        reply = read_batch_reply(self._outpost.ask(batch_call(nearest_ns, pack([job.item for job in jobs]))))
        self._stamp(row, reply)
        return reply

    def _stamp(self, row: int, reply: BatchReply) -> None:
        cells = self._batches.cells
        cells[row + c.B_MODEL_THREAD] = reply.thread_id
        cells[row + c.B_UNITS] = reply.units
        cells[row + c.B_PADDED_UNITS] = reply.padded_units
        cells[row + c.B_CPU] = reply.cpu_ns
        cells[row + c.B_MODEL_REACHED] = reply.reached_ns
        cells[row + c.B_COLLATED] = reply.collated_ns
        self._stamp_device(row, reply)
        cells[row + c.B_WOKEN] = reply.woken_ns

    def _recover(self, jobs: Sequence[Job], taken: Taken, error: BaseException, cpu: CpuLap) -> list[tuple[Job, Any]]:
        if not isinstance(error, ChildDied):
            return super()._recover(jobs, taken, error, cpu)
        for job in jobs:
            job.end(EndState.FAILED, "process_died", str(error))
        return []

    def _release_cache(self) -> None:
        """The child has done so."""


class RemoteStation(Station):
    """A worker's place whose device is in another process. Preprocess and postprocess inline stay in this one."""

    def __init__(self, bench: Bench, outpost: Outpost) -> None:
        self._bench = bench
        self._outpost = outpost
        self._runner = RemoteRunner(bench, outpost)
        outpost.start()

    @property
    def effective_threads(self) -> int:
        """How many threads one call of the model may use in the child, read back there."""
        return self._outpost.ready.result().effective_threads

    def warm_up(self) -> None:
        """Wait until the child has loaded and warmed its model; raises what kept it from it."""
        self._outpost.ready.result()

    def serve(self, taken: Taken) -> None:
        """As at any station; a worker that has lost its child waits for the next before it takes more work."""
        super().serve(taken)
        self._outpost.await_child()

    def close(self) -> None:
        """End the child."""
        self._outpost.close()


def _error_of(reply: BatchReply) -> Exception:
    """What the model raised in the child, as far as this process must tell it apart."""
    text, kind = read_failure(reply.body)
    if reply.verdict == REFUSED:
        return InputRefused(text)
    return OutOfDeviceMemory(text) if kind == OutOfDeviceMemory.__name__ else ModelRaised(kind, text)
