"""How do several replicas share one model's weights? Each has its own queue and its own workers.

A replica is a whole pipeline: preprocess and postprocess pools, a queue of `queue.depth`, a crew. A request
goes to the replica that has the least in hand, inputs of one request together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import Any

from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.weights import Size
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.scheduling.routing import least_loaded
from perfkit.serving.server.batch_run import BatchRunner
from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.gate import build_gate
from perfkit.serving.server.job import Job
from perfkit.serving.server.outbox import Counted
from perfkit.serving.server.pipeline import Pipeline
from perfkit.serving.server.plant import Plant
from perfkit.serving.server.residents import ResidentRunner, Residents
from perfkit.serving.server.wishes import Lanes
from perfkit.settings.server import ServerSettings


class Replicas:
    """Pipelines side by side over one model, behind one gate; used as a pipeline is."""

    def __init__(self, settings: ServerSettings, plant: Plant) -> None:
        self.gate = build_gate(settings, plant.clock)
        self._plant = plant
        self._lock = threading.Lock()  # guards _loads
        self._loads = [0] * settings.replicas  # jobs that came in and have not ended
        self._homes: dict[Job, int] = {}  # the replica of each such job
        counted = dataclasses.replace(plant, outbox=Counted(plant.outbox, self._ended))
        slots = settings.resident.models
        size = None if slots is None else Size(settings.replicas, min(slots, settings.replicas))
        self._residents = Residents(plant.model, plant.device, plant.clock, size) if size else None
        self._pipelines = [Pipeline(settings, counted, index, self._runs(index)) for index in range(settings.replicas)]
        self._turn = 0

    @property
    def effective_threads(self) -> tuple[int, ...]:
        """Intra-op threads in force at every station of every replica."""
        return tuple(threads for pipeline in self._pipelines for threads in pipeline.effective_threads)

    @property
    def queued(self) -> int:
        """Jobs that wait for a model worker, in all queues."""
        return sum(pipeline.queued for pipeline in self._pipelines)

    @property
    def admitted(self) -> int:
        """Jobs admitted and not yet in a model worker's hands, in all replicas."""
        return sum(pipeline.admitted for pipeline in self._pipelines)

    @property
    def lanes(self) -> Lanes | None:
        """The lanes by name; every replica has them all."""
        return self._pipelines[0].lanes

    def lane_stats(self) -> dict[str, dict[str, int]] | None:
        """What is queued and admitted in each lane, in all replicas; None where there are none."""
        stats = [stats for pipeline in self._pipelines if (stats := pipeline.lane_stats()) is not None]
        return {name: _summed([one[name] for one in stats]) for name in stats[0]} if stats else None

    def batching(self) -> tuple[int, float]:
        """Largest batch and window in seconds as of now, of the first replica."""
        return self._pipelines[0].batching()

    def start(self) -> None:
        """Start every replica; raises TargetFailed when one cannot start, and then none runs."""
        with contextlib.ExitStack() as started:
            started.callback(self._release)
            if self._residents is not None:
                self._residents.open()
            for pipeline in self._pipelines:
                pipeline.start()
                started.callback(pipeline.close)
            started.pop_all()

    def resting(self) -> int:
        """Model workers of all replicas that have nothing to do."""
        return sum(pipeline.resting() for pipeline in self._pipelines)

    def headcount(self) -> Headcount:
        """Model worker threads of all replicas."""
        first, *others = (pipeline.headcount() for pipeline in self._pipelines)
        return sum(others, first)

    @property
    def background(self) -> tuple[int, ...] | None:
        """The cores of everything but the workers; None = as they are."""
        return self._pipelines[0].background

    def worker_cpus(self) -> list[list[int] | None]:
        """Where each worker of every replica may run."""
        return [cpus for pipeline in self._pipelines for cpus in pipeline.worker_cpus()]

    def processes(self) -> list[dict[str, Any]]:
        """The child processes of all replicas."""
        return [process for pipeline in self._pipelines for process in pipeline.processes()]

    @property
    def batch_cap(self) -> int:
        """How many requests one call of the model may take at present, in the replica with the least room."""
        return min(pipeline.batch_cap for pipeline in self._pipelines)

    def unfit(self) -> Rejected | None:
        """Why it should not be sent requests: what any replica says."""
        return next(filter(None, (pipeline.unfit() for pipeline in self._pipelines)), None)

    def deaths_so_far(self) -> tuple[int, int]:
        """Threads that died, and posts of model workers that are vacant now, in all replicas."""
        counts, vacant = zip(*(pipeline.deaths_so_far() for pipeline in self._pipelines), strict=True)
        return sum(counts), sum(vacant)

    def loads(self) -> list[int]:
        """How much each replica has in hand."""
        return list(self._loads)

    def enter(self, jobs: Sequence[Job]) -> Rejected | None:
        """As a pipeline's, into the replica with the least in hand. Only for the event loop's thread."""
        index = least_loaded(self._loads, self._turn)
        self._turn = index + 1
        with self._lock:
            self._loads[index] += len(jobs)
        for job in jobs:
            self._homes[job] = index
        rejected = self._pipelines[index].enter(jobs)
        if rejected is not None:
            self._ended(jobs)
        return rejected

    def cancel(self, job: Job) -> bool:
        """As a pipeline's, in the job's own replica."""
        job.is_gone = True
        return self._taken_out(job, Pipeline.cancel)

    def expire(self, job: Job) -> bool:
        """As a pipeline's, in the job's own replica."""
        return self._taken_out(job, Pipeline.expire)

    def call_at(self, at_ns: int, call: Callable[[], None]) -> TimerHandle:
        """Have the event loop call back at an instant. Only for the loop's thread."""
        return self._plant.outbox.call_at(at_ns, call)

    def resident(self) -> dict[str, Any] | None:
        """Which replicas' copies are on the device, and what loading them cost; None when they share one."""
        return None if self._residents is None else self._residents.stats()

    def close(self) -> None:
        """Admit nothing more anywhere, finish what was admitted, end every thread. Blocks."""
        for pipeline in self._pipelines:
            pipeline.close()
        self._release()

    def _runs(self, index: int) -> Callable[[Any, Lane], BatchRunner]:
        """How the workers of a replica run their batches."""
        if self._residents is None:
            return BatchRunner
        return functools.partial(ResidentRunner, residents=self._residents, copy=index)

    def _release(self) -> None:
        if self._residents is not None:
            self._residents.close()

    def _taken_out(self, job: Job, take_out: Callable[[Pipeline, Job], bool]) -> bool:
        index = self._homes.get(job)
        if index is None:  # it has ended meanwhile, and its answer is on its way
            return False
        was_there = take_out(self._pipelines[index], job)
        if was_there:
            self._ended([job])
        return was_there

    def _ended(self, jobs: Sequence[Job]) -> None:
        """The jobs leave their replicas; called from any thread, before their answers leave."""
        with self._lock:
            for job in jobs:
                self._loads[self._homes.pop(job)] -= 1


def _summed(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {key: sum(one[key] for one in counts) for key in counts[0]}


def build(settings: ServerSettings, plant: Plant) -> Pipeline | Replicas:
    """What serves at a setting, not started yet."""
    return Pipeline(settings, plant) if settings.replicas == 1 else Replicas(settings, plant)
