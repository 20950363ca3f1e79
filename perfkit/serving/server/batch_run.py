"""How is one batch carried through the model, so that one bad request in it fails alone?

A call that raises is split in halves and tried again, until the request that makes it fail stands
alone; its mates are answered. Each try is a batch of its own in the ledger. Requests whose client has
left or whose deadline has passed are left out, also when that happened while their batch was collated.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from perfkit.serving.devices.lane import Lane
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import Collated, Model
from perfkit.serving.server.stages import describe, end_with

_log = logging.getLogger("perfkit.server")


class BatchIds(Protocol):
    """A source of batch numbers, unique in the process."""

    def __next__(self) -> int: ...


class BatchRunner:
    """One worker's way from sealed batch to outputs. Made by that worker's thread, and for it alone."""

    def __init__(self, model: Model, lane: Lane, requests: Ledger, batches: Ledger, batch_ids: BatchIds) -> None:
        self._model = model
        self._lane = lane
        self._requests = requests
        self._batches = batches
        self._batch_ids = batch_ids
        self._thread_id = threading.get_native_id()

    def run(self, jobs: Sequence[Job], taken: Taken, cpu: CpuLap) -> list[tuple[Job, Any]]:
        """Outputs for the jobs that have one; the others have ended with their error, or unserved."""
        jobs = self._wanted(jobs)
        if not jobs:
            return []
        row = self._seal(jobs, taken)
        failure: BaseException | None = None
        try:
            jobs, outputs = self._call(jobs, row, cpu)
        except BaseException as error:
            failure = error.with_traceback(None)  # its frames hold the batch's memory while the halves are tried
        if failure is not None:
            self._batches.close(row)
            return self._isolate(jobs, taken, failure, cpu)
        stamped = self._batches.cells[row : row + self._batches.width]
        self._batches.close(row)
        for job in jobs:
            job.batch_row = stamped
        return list(zip(jobs, outputs, strict=True))

    def _seal(self, jobs: Sequence[Job], taken: Taken) -> int:
        cells, row = self._batches.cells, self._batches.open()
        batch_id = next(self._batch_ids)
        cells[row + c.B_BATCH_ID] = batch_id
        cells[row + c.B_MODEL_THREAD] = self._thread_id
        cells[row + c.B_SIZE] = len(jobs)
        cells[row + c.B_WORKER_FREE] = taken.free_ns
        cells[row + c.B_DUE] = taken.due_ns
        cells[row + c.B_TAKEN] = taken.taken_ns
        cells[row + c.B_SEALED] = self._batches.now_ns()
        for job in jobs:
            self._requests.cells[job.row + c.BATCH_ID] = batch_id
        return row

    def _wanted(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """The jobs that are still worth working on; most have no deadline and a client, and cost no call."""
        clock = self._requests.clock
        return [job for job in jobs if not ((job.is_gone or job.deadline_ns) and job.is_over(clock))]

    def _collate(self, jobs: Sequence[Job]) -> tuple[Sequence[Job], Collated | None]:
        """The input for the model, of the jobs that are still wanted when it is ready; None when no job is."""
        while jobs:
            collated = self._model.collate([job.item for job in jobs])
            wanted = self._wanted(jobs)
            if len(wanted) == len(jobs):
                return jobs, collated
            jobs = wanted
        return jobs, None

    def _call(self, jobs: Sequence[Job], row: int, cpu: CpuLap) -> tuple[Sequence[Job], Sequence[Any]]:
        cells, now_ns = self._batches.cells, self._batches.now_ns
        jobs, collated = self._collate(jobs)
        cells[row + c.B_SIZE] = len(jobs)  # fewer than were sealed when some ended meanwhile
        if collated is None:
            return [], []
        cells[row + c.B_UNITS] = collated.units
        cells[row + c.B_PADDED_UNITS] = collated.padded_units
        cells[row + c.B_COLLATED] = now_ns()
        outputs, instants = self._lane.run(self._model.predict, collated)
        cells[row + c.B_WOKEN] = now_ns()
        cells[row + c.B_CPU] = cpu.lap_ns()
        if self._batches.stamps:
            self._stamp_device(row, instants)
        split = self._model.split(outputs, len(jobs))
        if len(split) != len(jobs):
            raise RuntimeError(f"the model gave {len(split)} outputs for {len(jobs)} inputs; it must give one each")
        return jobs, split

    def _stamp_device(self, row: int, instants: Any) -> None:
        cells, at = self._batches.cells, row + c.B_H2D_STARTED
        cells[at] = instants.h2d_started_ns
        cells[at + 1] = instants.h2d_ended_ns
        cells[at + 2] = instants.compute_started_ns
        cells[at + 3] = instants.compute_ended_ns
        cells[at + 4] = instants.d2h_started_ns
        cells[at + 5] = instants.d2h_ended_ns
        cells[row + c.B_CLAMPED] = instants.clamped_ns

    def _isolate(self, jobs: Sequence[Job], taken: Taken, error: BaseException, cpu: CpuLap) -> list[tuple[Job, Any]]:
        if len(jobs) == 1:
            end_with(jobs[0], error, "predict")
            return []
        kind, text = type(error).__name__, describe(error)
        _log.warning("a batch of %d failed (%s: %s); its halves are tried", len(jobs), kind, text)
        middle = len(jobs) // 2
        cpu.restart()
        return self.run(jobs[:middle], taken, cpu) + self.run(jobs[middle:], taken, cpu)
