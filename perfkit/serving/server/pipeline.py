"""How do pools, scheduler and workers form a service at one setting?

A pipeline is built for a setting, started, and drained when the setting changes; the model, the
device and the books outlive it. Both topologies run on it: *carry* is workers that take one request
through every stage; *staged* puts a pool, or a batch, between the stages.
"""

from __future__ import annotations

import dataclasses
import threading
from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import Any

from perfkit.clock import NS_PER_S
from perfkit.errors import TargetFailed
from perfkit.records import EndState
from perfkit.serving.devices.device import DeviceLost
from perfkit.serving.devices.lane import Lane
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.scheduling.decisions import CallerRuns, Rejected
from perfkit.serving.scheduling.pace import Pace
from perfkit.serving.server.batch_run import BatchRunner
from perfkit.serving.server.caller import Caller
from perfkit.serving.server.crews.crew import Crew, Headcount
from perfkit.serving.server.crews.fixed import FixedCrew
from perfkit.serving.server.crews.staffing import staff
from perfkit.serving.server.deaths import FEW_WORKERS, Deaths, give_up
from perfkit.serving.server.dispatcher import Dispatcher
from perfkit.serving.server.doorwatch import DoorWatch
from perfkit.serving.server.elsewhere import steps
from perfkit.serving.server.elsewhere.batches import RemoteStation
from perfkit.serving.server.elsewhere.outpost import Outpost, model_outpost, outposts
from perfkit.serving.server.elsewhere.pool import ProcessPool
from perfkit.serving.server.executed import get_ready
from perfkit.serving.server.gate import build_gate
from perfkit.serving.server.job import Job
from perfkit.serving.server.padding import collate_of
from perfkit.serving.server.pins import Pins, cpus_of, decide, move_to
from perfkit.serving.server.plant import Plant
from perfkit.serving.server.pool import Duty, Pool, Work
from perfkit.serving.server.preemption import stand_behind
from perfkit.serving.server.room import Room
from perfkit.serving.server.section import AnyScheduler, Section, build_sections, tuner_of
from perfkit.serving.server.stages import describe, postprocess, preprocess
from perfkit.serving.server.station import Bench, Station
from perfkit.serving.server.warmup import warm_up_sizes
from perfkit.serving.server.wishes import LaneEntry, known_lanes
from perfkit.settings.server import ServerSettings
from perfkit.settings.workers import StageSettings


class Pipeline:
    """A running service at one setting."""

    def __init__(
        self,
        settings: ServerSettings,
        plant: Plant,
        replica: int | None = None,
        runs: Callable[[Any, Lane], BatchRunner] = BatchRunner,
    ) -> None:
        self.settings = settings
        self.effective_threads: tuple[int, ...] = ()
        self.gate = build_gate(settings, plant.clock)
        self._plant = plant
        self._runs = runs
        self._mark = "" if replica is None else f"-{replica}"  # in the names of its threads
        self.deaths = Deaths(plant.clock, plant.on_lost, settings.min_workers)
        self._room = Room(settings.batch.max_size, plant.clock)
        self._replica = replica or 0
        self._pins = Pins(plant.cores, None, ())
        self._models: dict[str, Outpost] = {}  # by worker, when the workers' models are in other processes
        before = Duty(apply=self._preprocess, give_up=self._drop_unprepared)
        after = Duty(apply=self._postprocess, give_up=self._drop_unfinished)
        self._before = self._place("preprocess", settings.preprocess, before, self._preprocess_elsewhere)
        self._after = self._place("postprocess", settings.postprocess, after, self._postprocess_elsewhere)
        self.lanes = known_lanes(settings)
        self._by_lane = build_sections(settings, self.lanes, self._open_section)
        self._sections = list(dict.fromkeys(self._by_lane))
        self._doors = DoorWatch(plant.outbox, [section.dispatcher for section in self._sections])
        self._caller = Caller(self._bench(self._by_lane[0].dispatcher))

    def loads(self) -> list[int]:
        """There is nothing to choose between."""
        return []

    def resident(self) -> dict[str, Any] | None:
        """There is one copy of the model, and it stays."""
        return None

    @property
    def queued(self) -> int:
        """Jobs that wait for a model worker."""
        return sum(section.dispatcher.queued for section in self._sections)

    @property
    def admitted(self) -> int:
        """Jobs admitted and not yet in a model worker's hands."""
        return sum(section.dispatcher.admitted for section in self._sections)

    def lane_stats(self) -> dict[str, dict[str, int]] | None:
        """What is queued and admitted in each lane; None where there are none."""
        if self.lanes is None:
            return None
        counts = {
            lane.name: self._by_lane[lane.number].dispatcher.counts_of(lane.number) for lane in self.lanes.values()
        }
        return {name: {"queued": queued, "admitted": admitted} for name, (queued, admitted) in counts.items()}

    @property
    def background(self) -> tuple[int, ...] | None:
        """The cores of everything but the workers; None = as they are."""
        return self._pins.background

    def worker_cpus(self) -> list[list[int] | None]:
        """Where each worker's model may run by the kernel's own word, in the order of their names."""
        pids = {name: outpost.hello.pid for name, outpost in self._models.items() if outpost.hello is not None}
        threads = {thread.name: thread.native_id for thread in threading.enumerate()}
        return [cpus_of(pids.get(name, threads.get(name))) for name in self.deaths.posts()]

    def processes(self) -> list[dict[str, Any]]:
        """Its child processes: what holds inside each, read back there."""
        return [outpost.stats() for group in self._outposts() for outpost in group]

    def batching(self) -> tuple[int, float]:
        """Largest batch and window in seconds as of now, of the queue that most requests share."""
        max_size, max_delay_ns = self._by_lane[0].dispatcher.batching
        return max_size, max_delay_ns / NS_PER_S

    def start(self) -> None:
        """Start every thread and wait until all workers are warm; raises TargetFailed when one cannot start."""
        if self.settings.concurrency.model != "processes":  # each of which gets a model of its own ready
            get_ready(self._plant.model, self.settings)
        self._pins = decide(self.settings, self._plant.cores, self.deaths.posts(), self._replica)
        move_to(self._pins.background)  # what this thread starts inherits it
        for outpost in (outpost for group in self._outposts() for outpost in group):
            outpost.place_on(self._pins.background)
        pools = [pool for pool in (self._before, self._after) if pool is not None]
        for pool in pools:
            pool.start()
        who = "a model worker"
        try:
            self.effective_threads = tuple(threads for section in self._sections for threads in section.crew.start())
            who = "a process"
            for pool in pools:
                pool.await_ready()
        except DeviceLost:
            self.close()
            raise
        except BaseException as error:  # a model may even call sys.exit()
            self.close()
            raise TargetFailed(f"{who} cannot start: {type(error).__name__}: {describe(error)}") from error

    @property
    def batch_cap(self) -> int:
        """How many requests one call of the model may take at present."""
        return self._room.most_at_once

    def unfit(self) -> Rejected | None:
        """Why it should not be sent requests: threads die in a loop, or too few workers are left."""
        return self.deaths.unfit() or (FEW_WORKERS if any(map(self._is_short, self._outposts())) else None)

    def deaths_so_far(self) -> tuple[int, int]:
        """Threads that died, and posts of model workers that are vacant now."""
        return self.deaths.count, self.deaths.vacant

    def headcount(self) -> Headcount:
        """Model worker threads: now, at most so far, and started in all."""
        first, *others = (section.crew.headcount() for section in self._sections)
        return sum(others, first)

    def resting(self) -> int:
        """Model workers that have nothing to do."""
        return sum(section.dispatcher.resting for section in self._sections)

    def enter(self, jobs: Sequence[Job]) -> Rejected | None:
        """The jobs of one request come in, all or none. None = they are on their way, at the door, or have been run.

        Only for the event loop's thread.
        """
        if self.deaths.count and (why := self.deaths.crash_loop()) is not None:
            return why
        section = self._by_lane[jobs[0].lane]
        if section.crew.only_queues:
            admission = section.dispatcher.enter(jobs)
        else:
            admission = section.crew.admit(jobs)
            if admission is None:
                self._send_on(jobs, section.crew)
        if admission is None:
            return None
        if isinstance(admission, Rejected):
            return admission
        if isinstance(admission, CallerRuns):
            self._caller.run(jobs, 1 if jobs[0].is_alone else self.settings.batch.max_size)
        else:
            self._doors.look_at(admission.until_ns)
        return None

    def cancel(self, job: Job) -> bool:
        """The client has left. True when the job was queued and has ended now; else a thread has it and ends it."""
        job.is_gone = True
        if not self._by_lane[job.lane].dispatcher.cancel(job):
            return False
        job.end(EndState.CANCELLED, "client_gone")
        return True

    def expire(self, job: Job) -> bool:
        """The deadline has passed. True when the job was queued and has ended now; else a thread has it and ends it."""
        if not self._by_lane[job.lane].dispatcher.cancel(job):
            return False
        job.expire()
        return True

    def call_at(self, at_ns: int, call: Callable[[], None]) -> TimerHandle:
        """Have the event loop call back at an instant. Only for the loop's thread."""
        return self._plant.outbox.call_at(at_ns, call)

    def close(self) -> None:
        """Admit nothing more, finish what was admitted, end every thread. Blocks."""
        # Front to back: each pool empties into the next before that one is told to end.
        for section in self._sections:
            section.dispatcher.drain()
        self.deaths.close()
        if self._before is not None:
            self._before.close()
        for section in self._sections:
            section.crew.close()
        if self._after is not None:
            self._after.close()

    def _place(
        self,
        stage: str,
        wanted: StageSettings,
        here: Duty[Work],
        elsewhere: Callable[[Outpost, Work], None],
    ) -> Pool[Work] | ProcessPool[Work] | None:
        """The pool of a stage, if it is to have one."""
        name = f"{stage}{self._mark}"
        if wanted.placement == "threads":
            return Pool(name, wanted.threads, here, self._plant.device, self.deaths)
        if wanted.placement == "processes":
            return ProcessPool(outposts(name, wanted.processes, self.settings), elsewhere, here.give_up)
        return None

    def _send_on(self, jobs: Sequence[Job], crew: Crew) -> None:
        for job in jobs:
            if not self._forward(job):
                crew.put(job)

    def _forward(self, job: Job) -> bool:
        """An admitted job starts on its way; False when that leads straight to the queue."""
        requests = self._plant.books.requests
        requests.cells[job.row + c.PREPROCESS_QUEUED] = requests.now_ns()
        if self._before is None:
            crew = self._by_lane[job.lane].crew
            return not crew.only_queues and crew.takes(job)
        self._before.put(job)
        return True

    def _open_section(self, scheduler: AnyScheduler, lane: LaneEntry | None) -> Section:
        """A section whose crew is that of the setting, or the workers that its lane has to itself."""
        plant = self._plant
        dispatcher = Dispatcher(scheduler, plant.clock, plant.outbox, self._forward, tuner_of(self.settings))
        bench = self._bench(dispatcher)
        if lane is None:
            return Section(dispatcher=dispatcher, crew=staff(self.settings, bench))
        name, priority = f"{bench.name}-{lane.name}", lane.settings.stream_priority
        bench = dataclasses.replace(bench, name=name, stream_priority=priority)
        return Section(dispatcher=dispatcher, crew=FixedCrew(bench, lane.settings.workers))

    def _bench(self, dispatcher: Dispatcher) -> Bench:
        plant, settings = self._plant, self.settings
        return Bench(
            name=f"model{self._mark}",
            model=plant.model,
            device=plant.device,
            dispatcher=dispatcher,
            outbox=plant.outbox,
            requests=plant.books.requests,
            batches=plant.books.batches,
            batch_ids=plant.books.batch_ids,
            room=self._room,
            pace=Pace() if settings.queue.policy == "shed" else None,
            collate=collate_of(plant.model, settings.batch),
            checks_outputs=settings.check_outputs,
            deaths=self.deaths,
            postprocess_pool=self._after,
            preprocesses_inline=self._before is None,
            intra_op_threads=settings.intra_op_threads,
            warm_up_sizes=warm_up_sizes(plant.device, settings.batch.max_size),
            runs=self._runs,
            opens=self._open_elsewhere if settings.concurrency.model == "processes" else self._open_here,
        )

    def _outposts(self) -> list[Sequence[Outpost]]:
        """Its child processes' places, by what they do."""
        pools = [pool.outposts for pool in (self._before, self._after) if isinstance(pool, ProcessPool)]
        return [*pools, [self._models[name] for name in sorted(self._models)]]

    def _is_short(self, group: Sequence[Outpost]) -> bool:
        return sum(outpost.is_manned for outpost in group) < min(len(group), self.settings.min_workers)

    def _open_here(self, name: str, bench: Bench) -> Station:
        move_to(self._pins.worker(name))  # before the first call: a library's threads inherit it
        stand_behind(self.settings.worker_nice)
        return Station(name, bench)

    def _open_elsewhere(self, name: str, bench: Bench) -> Station:
        outpost = model_outpost(name, self.settings, bench.warm_up_sizes)
        outpost.place_on(self._pins.worker(name))
        self._models[name] = outpost
        return RemoteStation(bench, outpost)

    def _preprocess(self, job: Job) -> None:
        requests = self._plant.books.requests
        self._hand_on(job, preprocess(self._plant.model, requests, job, CpuLap(requests.cpu_ns)))

    def _preprocess_elsewhere(self, outpost: Outpost, job: Job) -> None:
        self._hand_on(job, steps.preprocess(outpost, self._plant.books.requests, job))

    def _hand_on(self, job: Job, has_item: bool) -> None:
        if has_item:
            self._by_lane[job.lane].crew.put(job)
        else:
            self._drop_unprepared(job, None)

    def _drop_unprepared(self, job: Job, why: BaseException | Rejected | None) -> None:
        """A job leaves before it has reached the queue: it has ended by itself, or is given up for a reason."""
        if why is not None:
            give_up([job], why)
        self._by_lane[job.lane].dispatcher.withdraw(job)
        self._plant.outbox.put([job])

    def _drop_unfinished(self, pair: tuple[Job, Any], why: BaseException | Rejected) -> None:
        give_up([pair[0]], why)
        self._plant.outbox.put([pair[0]])

    def _postprocess_elsewhere(self, outpost: Outpost, pair: tuple[Job, Any]) -> None:
        steps.postprocess(outpost, self._plant.books.requests, *pair)
        self._plant.outbox.put([pair[0]])

    def _postprocess(self, pair: tuple[Job, Any]) -> None:
        job, output = pair
        requests = self._plant.books.requests
        postprocess(self._plant.model, requests, job, output, CpuLap(requests.cpu_ns))
        self._plant.outbox.put([job])
