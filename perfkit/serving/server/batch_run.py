"""How is one batch carried through the model, so that one bad request in it fails alone?

A call that raises is split in halves and tried again, until the request that makes it fail stands
alone; its mates are answered. A call that runs out of the device's memory is tried again in smaller
parts, whoever was in it. Each try is a batch of its own in the ledger. What the device itself raises
is nobody's request's fault: it ends the worker's thread, and a lost device ends the process. Requests
whose client has left or whose deadline has passed are left out, also when that happened while their
batch was collated.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from perfkit.records import EndState
from perfkit.serving.devices.device import DeviceLost, OutOfDeviceMemory
from perfkit.serving.devices.lane import Lane
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import Collated, Model
from perfkit.serving.server.outputs import has_nan
from perfkit.serving.server.padding import Collate
from perfkit.serving.server.room import Room
from perfkit.serving.server.stages import describe, end_with, kind_of

_log = logging.getLogger("perfkit.server")


class BatchIds(Protocol):
    """A source of batch numbers, unique in the process."""

    def __next__(self) -> int: ...


class Tools(Protocol):
    """What a runner needs of the bench that it works at."""

    @property
    def model(self) -> Model:
        """Whose calls it makes."""

    @property
    def requests(self) -> Ledger:
        """Where requests are written down."""

    @property
    def batches(self) -> Ledger:
        """Where batches are written down."""

    @property
    def batch_ids(self) -> BatchIds:
        """Where batch numbers come from."""

    @property
    def room(self) -> Room:
        """How many requests fit one call."""

    @property
    def collate(self) -> Collate:
        """How the items of a batch become one input."""

    @property
    def checks_outputs(self) -> bool:
        """Whether an output that holds a NaN is an error."""


class BatchRunner:
    """One worker's way from sealed batch to outputs. Made by that worker's thread, and for it alone."""

    def __init__(self, bench: Tools, lane: Lane | None) -> None:
        self._model = bench.model
        self._lane = lane
        self._requests = bench.requests
        self._batches = bench.batches
        self._batch_ids = bench.batch_ids
        self._room = bench.room
        self._collate_items = bench.collate
        self._checks_outputs = bench.checks_outputs
        self._thread_id = threading.get_native_id()
        self._is_in_device = False  # whose code is running: the device's, or the model's

    def run(self, jobs: Sequence[Job], taken: Taken, cpu: CpuLap) -> list[tuple[Job, Any]]:
        """Outputs for the jobs that have one; the others have ended with their error, or unserved.

        Raises DeviceLost, and whatever the device's own code raises.
        """
        jobs = self._wanted(jobs)
        if not jobs:
            return []
        if len(jobs) > self._room.most_at_once:
            return self._run_in_parts(jobs, taken, cpu, len(jobs))
        row = self._seal(jobs, taken)
        failure: BaseException | None = None
        try:
            jobs, outputs = self._call(jobs, row, cpu)
        except BaseException as error:
            failure = error
        if failure is not None:  # outside of `except`, where the error's frames would hold the batch's memory
            self._batches.close(row)
            return self._recover(jobs, taken, failure, cpu)
        stamped = self._batches.cells[row : row + self._batches.width]
        self._batches.close(row)
        if jobs and not self._room.is_settled:
            self._room.fitted(len(jobs))
        for job in jobs:
            job.batch_row = stamped
        return self._checked(jobs, outputs) if self._checks_outputs else list(zip(jobs, outputs, strict=True))

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
        """The jobs that are still worth working on."""
        for job in jobs:
            if job.is_gone or job.deadline_ns:
                clock = self._requests.clock
                return [job for job in jobs if not job.is_over(clock)]
        return jobs  # the common case, for which this is asked twice a batch

    def _collate(self, jobs: Sequence[Job], row: int) -> tuple[Sequence[Job], Collated | None]:
        """The input for the model, of the jobs that are still wanted when it is ready; None when no job is."""
        while jobs:
            collated = self._collate_items([job.item for job in jobs])
            self._batches.cells[row + c.B_COLLATED] = self._batches.now_ns()
            wanted = self._wanted(jobs)  # later than the stamp: no deadline that the model sees lies before it
            if len(wanted) == len(jobs):
                return jobs, collated
            jobs = wanted
            self._batches.cells[row + c.B_SIZE] = len(jobs)
        return jobs, None

    def _call(self, jobs: Sequence[Job], row: int, cpu: CpuLap) -> tuple[Sequence[Job], Sequence[Any]]:
        cells = self._batches.cells
        jobs, collated = self._collate(jobs, row)
        if collated is None:
            return [], []
        cells[row + c.B_UNITS] = collated.units
        cells[row + c.B_PADDED_UNITS] = collated.padded_units
        assert self._lane is not None, "who has no lane has a call of its own"
        self._is_in_device = True
        outputs, instants = self._lane.run(self._predict, collated)
        self._is_in_device = False
        cells[row + c.B_WOKEN] = self._batches.now_ns()
        cells[row + c.B_CPU] = cpu.lap_ns()
        if self._batches.stamps:
            self._stamp_device(row, instants)
        split = self._model.split(outputs, len(jobs))
        if len(split) != len(jobs):
            raise RuntimeError(f"the model gave {len(split)} outputs for {len(jobs)} inputs; it must give one each")
        return jobs, split

    def _predict(self, inputs: Any) -> Any:
        self._is_in_device = False
        outputs = self._model.predict(inputs)
        self._is_in_device = True
        return outputs

    def _stamp_device(self, row: int, instants: Any) -> None:
        cells, at = self._batches.cells, row + c.B_H2D_STARTED
        cells[at] = instants.h2d_started_ns
        cells[at + 1] = instants.h2d_ended_ns
        cells[at + 2] = instants.compute_started_ns
        cells[at + 3] = instants.compute_ended_ns
        cells[at + 4] = instants.d2h_started_ns
        cells[at + 5] = instants.d2h_ended_ns
        cells[row + c.B_CLAMPED] = instants.clamped_ns

    def _recover(self, jobs: Sequence[Job], taken: Taken, error: BaseException, cpu: CpuLap) -> list[tuple[Job, Any]]:
        is_out_of_memory = isinstance(error, OutOfDeviceMemory)
        if isinstance(error, DeviceLost) or (self._is_in_device and not is_out_of_memory):
            raise error
        self._is_in_device = False
        _let_go(error)
        if is_out_of_memory:
            self._release_cache()
        if len(jobs) == 1:
            _end_alone(jobs[0], error)
            return []
        kind, text, size = kind_of(error), describe(error), len(jobs)
        _log.warning("a batch of %d failed (%s: %s); it is tried again in parts", size, kind, text)
        if is_out_of_memory:
            self._room.ran_out(size)
        cpu.restart()
        # Rounded up: the first part is no smaller than the second, and both are smaller than the whole.
        return self._run_in_parts(jobs, taken, cpu, (size + 1) // 2)

    def _release_cache(self) -> None:
        if self._lane is not None:
            self._lane.release_cache()

    def _run_in_parts(self, jobs: Sequence[Job], taken: Taken, cpu: CpuLap, most: int) -> list[tuple[Job, Any]]:
        answered: list[tuple[Job, Any]] = []
        done = 0
        while done < len(jobs):
            size = min(most, self._room.most_at_once)
            answered += self.run(jobs[done : done + size], taken, cpu)
            cpu.restart()
            done += size
        return answered

    def _checked(self, jobs: Sequence[Job], outputs: Sequence[Any]) -> list[tuple[Job, Any]]:
        """Only outputs without NaN; the other jobs have ended."""
        sound: list[tuple[Job, Any]] = []
        for job, output in zip(jobs, outputs, strict=True):
            if has_nan(output):
                message = "the model's output for this input is not a number (setting check_outputs)"
                job.end(EndState.FAILED, "nan_output", message)
            else:
                sound.append((job, output))
        return sound


def _end_alone(job: Job, error: BaseException) -> None:
    if isinstance(error, OutOfDeviceMemory):
        message = f"this request alone does not fit the device's memory: {describe(error)}; send a smaller input"
        job.end(EndState.FAILED, "out_of_device_memory", message)
    else:
        end_with(job, error, "predict")


def _let_go(error: BaseException) -> None:
    """Forget the frames of an error and of those behind it: they hold the memory of the call that failed."""
    behind: BaseException | None = error
    while behind is not None:
        behind.__traceback__ = None
        behind = behind.__cause__ or behind.__context__
