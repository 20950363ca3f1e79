"""What does a preset do behind the server's own scheduler, with batches, under a closed loop in virtual time?

The timeline is the simulated device's and the scheduler is the server's: only the threads are missing. A user sends
as soon as it has its reply. A request passes the server's own work, waits in the queue, is preprocessed by the worker
that took its batch, computed, postprocessed by that worker, and answered by the server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.simulated.engine import Stream
from perfkit.serving.devices.simulated.preset import DELAY, HOST, Preset, Step
from perfkit.serving.devices.simulated.service import ServiceTimes
from perfkit.serving.devices.simulated.timeline import Timeline
from perfkit.serving.devices.simulated.virtual import VirtualRun
from perfkit.serving.scheduling.decisions import Limits, Send, WaitUntil
from perfkit.serving.scheduling.scheduler import Scheduler

_SETTLE_RATIO = 0.1  # of the requests, before anything is counted


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting under one load: users, model workers, largest batch, window."""

    users: int
    workers: int
    max_size: int
    max_delay_s: float = 0.0


def run_cell(preset: Preset, cell: Cell, requests: int, seed: int = 0) -> VirtualRun:
    """Serve so many requests after a tenth of them that settles the loop; everything is in virtual time."""
    return _Loop(preset, cell, seed).complete(requests)


@dataclasses.dataclass(slots=True, eq=False)
class _Asked:
    """A request, as the scheduler wants it."""

    sent_ns: int
    queued_ns: int = 0
    deadline_ns: int = 0
    lane: int = 0
    is_alone: bool = False


class _Loop:
    def __init__(self, preset: Preset, cell: Cell, seed: int) -> None:
        self._preset = preset
        self._cell = cell
        self._timeline = Timeline(preset.engines, seed)
        self._times = ServiceTimes(seed + 1)
        limits = Limits(max_size=cell.max_size, max_delay_ns=round(cell.max_delay_s * NS_PER_S), depth=None)
        self._scheduler: Scheduler[_Asked] = Scheduler(limits)
        self._free = [Stream() for _ in range(cell.workers)]
        self._window: Stream | None = None  # of the alarm for the end of a window, while one is set
        self._nexts: list[Callable[[], None]] = []
        self._latencies_ns: list[int] = []

    def complete(self, requests: int) -> VirtualRun:
        timeline, settle = self._timeline, round(requests * _SETTLE_RATIO)
        for _ in range(self._cell.users):
            self._send()
        self._step_until(settle)
        began_ns, first = timeline.now_ns, len(self._latencies_ns)
        self._step_until(first + requests)
        took_ns = timeline.now_ns - began_ns
        busy = {
            name: engine.busy_ns(timeline.now_ns) / timeline.now_ns
            for name, engine in timeline.engines.items()
            if not engine.is_delay
        }
        counted = self._latencies_ns[first:]
        rate = len(counted) / (took_ns / NS_PER_S)
        return VirtualRun(throughput_rps=rate, latencies_ns=counted, busy_ratio=busy)

    def _step_until(self, answered: int) -> None:
        while len(self._latencies_ns) < answered:
            for operation in self._timeline.step():
                if operation.tag is not None:
                    self._nexts[operation.tag]()

    def _do(self, stream: Stream, steps: Iterable[Step], then: Callable[[], None]) -> None:
        """Append work to a stream, and go on with `then` at its end."""
        timeline, operation = self._timeline, None
        for engine, mean_ns, cv, share in steps:
            duration_ns = self._times.draw_ns(mean_ns, cv)
            if duration_ns:
                operation = timeline.submit(stream, engine, duration_ns, timeline.now_ns, share)
        if operation is None:
            then()
            return
        self._nexts.append(then)
        operation.tag = len(self._nexts) - 1

    def _send(self) -> None:
        asked, server = _Asked(sent_ns=self._timeline.now_ns), self._preset.service.server
        half = Step(HOST, server.serial_s / 2 * NS_PER_S, 0.0)
        self._do(Stream(), [half], lambda: self._arrive(asked))

    def _arrive(self, asked: _Asked) -> None:
        asked.queued_ns = self._timeline.now_ns
        self._scheduler.admit([asked], asked.queued_ns)
        self._scheduler.enqueue(asked)
        self._offer()

    def _offer(self) -> None:
        """Whoever is free takes what may leave."""
        while self._free:
            decision = self._scheduler.decide(self._timeline.now_ns)
            if isinstance(decision, Send):
                self._serve(self._free.pop(), decision.batch)
                continue
            if isinstance(decision, WaitUntil) and self._window is None:
                self._window = Stream()
                wait_ns = decision.until_ns - self._timeline.now_ns
                self._do(self._window, [Step(DELAY, wait_ns, 0.0)], self._window_ends)
            return

    def _window_ends(self) -> None:
        self._window = None
        self._offer()

    def _serve(self, worker: Stream, batch: list[_Asked]) -> None:
        preset, size, in_flight = self._preset, len(batch), self._cell.users
        service, device = preset.service, preset.device
        copies = [device.h2d_step(size * device.input_bytes)] if device.input_bytes else []
        back = [device.d2h_step(size * device.output_bytes)] if device.output_bytes else []
        steps = [
            *service.host_steps(service.preprocess, in_flight) * size,
            *preset.dispatch_steps(in_flight),
            *copies,
            preset.compute_step(size),
            *back,
            *service.host_steps(service.postprocess, in_flight) * size,
        ]
        self._do(worker, steps, lambda: self._finish(worker, batch))

    def _finish(self, worker: Stream, batch: list[_Asked]) -> None:
        for asked in batch:
            half = Step(HOST, self._preset.service.server.serial_s / 2 * NS_PER_S, 0.0)
            self._do(Stream(), [half], lambda asked=asked: self._answer(asked))  # type: ignore[misc]
        self._free.append(worker)
        self._offer()

    def _answer(self, asked: _Asked) -> None:
        self._latencies_ns.append(self._timeline.now_ns - asked.sent_ns)
        pause = Step(DELAY, self._preset.service.server.parallel_s * NS_PER_S, 0.0)
        self._do(Stream(), [pause], self._send)
