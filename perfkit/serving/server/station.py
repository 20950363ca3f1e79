"""What does a model worker do with a batch? Carry it through, hand the answers on; nothing else.

A station is a lane to the device and what is done at it. Which thread stands there, and for how long,
is the crew's business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from perfkit.records import EndState
from perfkit.serving.devices.device import Device, OutOfDeviceMemory
from perfkit.serving.devices.lane import Lane
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.instrument.ledger import Ledger
from perfkit.serving.scheduling.pace import Pace
from perfkit.serving.server.batch_run import BatchIds, BatchRunner
from perfkit.serving.server.deaths import Deaths, give_up
from perfkit.serving.server.dispatcher import Dispatcher, Taken
from perfkit.serving.server.elsewhere.pool import ProcessPool
from perfkit.serving.server.job import Job
from perfkit.serving.server.model import Model
from perfkit.serving.server.outbox import LoopExit
from perfkit.serving.server.padding import Collate
from perfkit.serving.server.pool import Pool
from perfkit.serving.server.rejections import REJECTIONS
from perfkit.serving.server.room import Room
from perfkit.serving.server.stages import postprocess, preprocess
from perfkit.serving.server.warmup import warm_up


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all workers of a pipeline share."""

    name: str  # what the threads of the crew are called, before their number
    model: Model
    device: Device
    dispatcher: Dispatcher
    outbox: LoopExit
    requests: Ledger
    batches: Ledger
    batch_ids: BatchIds
    room: Room
    collate: Collate
    checks_outputs: bool
    deaths: Deaths
    postprocess_pool: Pool[tuple[Job, Any]] | ProcessPool[tuple[Job, Any]] | None
    preprocesses_inline: bool
    intra_op_threads: int
    warm_up_sizes: tuple[int, ...]
    opens: Callable[[str, Bench], Station]  # a place for a worker; on the worker's own thread
    runs: Callable[[Any, Lane], BatchRunner] = BatchRunner
    stream_priority: int = 0  # of the workers' streams on the device
    pace: Pace | None = None  # how long a batch takes, where what would come too late is shed


class Station:
    """One thread's place at the device: made, used and closed by that thread."""

    def __init__(self, name: str, bench: Bench) -> None:
        self._bench = bench
        self._lane: Lane = bench.device.open_lane(name, bench.intra_op_threads, bench.stream_priority)
        self._runner = bench.runs(bench, self._lane)
        self._held: Sequence[Job] = ()  # of these, all from the one numbered `_handed_on` are with nobody else yet
        self._handed_on = 0

    @property
    def effective_threads(self) -> int:
        """How many threads one call of the model may use here, read back from the library."""
        return self._lane.effective_threads()

    def warm_up(self) -> None:
        """Call the model with its own example at the sizes that it will see; raises what the model raises.

        Of sizes that do not fit the device's memory the room is told, except where one request alone does not.
        """
        room = self._bench.room
        for size in sorted({min(size, room.most_at_once) for size in self._bench.warm_up_sizes}):
            if not self._fits(size):
                self._lane.release_cache()
                room.ran_out(size)
                return

    def _fits(self, size: int) -> bool:
        try:
            warm_up(self._bench.model, self._bench.collate, self._lane, (size,))
        except OutOfDeviceMemory:
            if size == 1:
                raise
            return False
        return True

    def serve(self, taken: Taken) -> None:
        """Carry a batch through; each of its jobs has ended afterwards, or is in the postprocess pool.

        Also when it raises, which nothing that a request brings can make it do.
        """
        self._held, self._handed_on = taken.jobs, 0
        try:
            self._carry(taken)
        except BaseException as error:
            held = self._held[self._handed_on :]
            give_up(held, error)
            self._bench.outbox.put(held)
            raise

    def _carry(self, taken: Taken) -> None:
        bench = self._bench
        cpu = CpuLap(bench.requests.cpu_ns)
        pace = bench.pace
        jobs = self._join(taken.jobs if pace is None else self._hopeful(taken.jobs, pace), taken, cpu)
        answered = self._runner.run(jobs, taken, cpu) if jobs else []
        if pace is not None and answered:
            pace.took(bench.requests.clock.now_ns() - taken.taken_ns)
        if len(answered) != len(taken.jobs):
            bench.outbox.put([job for job in taken.jobs if job.end_state is not EndState.OPEN])
            self._held = [job for job, _ in answered]
        self._hand_on(answered, cpu)
        self._held = ()
        if bench.dispatcher.wants_times:
            bench.dispatcher.served(len(taken.jobs), bench.device.clock.now_ns() - taken.taken_ns)

    def close(self) -> None:
        """Give the lane back, on the thread that opened it."""
        self._lane.close()

    def _hopeful(self, jobs: Sequence[Job], pace: Pace) -> list[Job]:
        """The jobs whose answer can come before their deadline; the others are shed, and cost no work.

        What leaves a long queue has just so much of its deadline left that it did not expire there. Without
        this a worker in overload would serve almost nothing else, all of it in vain.
        """
        ends_ns = self._bench.requests.clock.now_ns() + pace.expected_ns
        hopeful = []
        for job in jobs:
            if 0 < job.deadline_ns <= ends_ns:
                job.end(EndState.REJECTED, "shed", REJECTIONS["shed"])
            else:
                hopeful.append(job)
        if not hopeful:
            pace.dropped_all()
        return hopeful

    def _join(self, jobs: Sequence[Job], taken: Taken, cpu: CpuLap) -> list[Job]:
        """The jobs that join the batch, each stamped with when it did; those that ended in preprocess are left out."""
        bench = self._bench
        joined: list[Job] = []
        for job in jobs:
            if bench.preprocesses_inline:
                if not preprocess(bench.model, bench.requests, job, cpu):
                    continue
                job.queued_ns = bench.requests.now_ns()
            cells = bench.requests.cells
            cells[job.row + c.MODEL_QUEUED] = job.queued_ns
            cells[job.row + c.BATCH_JOINED] = max(job.queued_ns, taken.free_ns)
            joined.append(job)
        return joined

    def _hand_on(self, answered: list[tuple[Job, Any]], cpu: CpuLap) -> None:
        bench = self._bench
        if bench.postprocess_pool is not None:
            self._held = [job for job, _ in answered]
            for self._handed_on, pair in enumerate(answered):
                bench.requests.cells[pair[0].row + c.POSTPROCESS_QUEUED] = bench.requests.now_ns()
                bench.postprocess_pool.put(pair)
            return
        for number, (job, output) in enumerate(answered):
            if number:
                cpu.restart()  # the answer before was serialised meanwhile
            postprocess(bench.model, bench.requests, job, output, cpu)
        if answered:
            bench.outbox.put([job for job, _ in answered])
