"""What does the server process hold, and how does it start, change and stop?

The event loop owns a `Service`; whatever blocks (starting and draining pipelines) runs on a thread
of its own so that health, stats and rejects are answered meanwhile.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from perfkit import fields
from perfkit.clock import NS_PER_S, REAL_CLOCK, process_cpu_ns
from perfkit.errors import ConfigError
from perfkit.records import EndState
from perfkit.serving.devices.device import Device
from perfkit.serving.instrument.gauge import InFlightGauge
from perfkit.serving.instrument.sleeper import GilSleeper
from perfkit.serving.scheduling.decisions import Rejected
from perfkit.serving.server import executed
from perfkit.serving.server.cautions import cautions
from perfkit.serving.server.deaths import LOST
from perfkit.serving.server.elsewhere.child import children_cpu_ns
from perfkit.serving.server.front import Front
from perfkit.serving.server.histogram import BatchSizes, Histogram
from perfkit.serving.server.model import Model
from perfkit.serving.server.outbox import Outbox
from perfkit.serving.server.pins import cpus_of, move_to
from perfkit.serving.server.plant import Books, Plant
from perfkit.serving.server.replicas import build
from perfkit.serving.server.slow_requests import SlowRequestLog
from perfkit.settings.server import ServerSettings

STARTING = Rejected(reason="starting", retry_after_s=1.0)
_DRAINING = Rejected(reason="draining", retry_after_s=5.0)
_PYTHONS_SWITCH_INTERVAL_S = 0.005
_log = logging.getLogger("perfkit.server")


def _log_cautions(settings: ServerSettings) -> None:
    for text in cautions(settings):
        _log.warning("%s", text)


def _set_switch_interval(settings: ServerSettings) -> None:
    sys.setswitchinterval(settings.switch_interval_s or _PYTHONS_SWITCH_INTERVAL_S)


class Service:
    """Model, device, books and the present pipeline. Its attributes belong to the event loop's thread."""

    def __init__(self, settings: ServerSettings, model: Model, device: Device) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings
        self.clock = REAL_CLOCK
        self.model = model
        self.device = device
        self.books = Books(settings.ledger)
        self.gauge = InFlightGauge(self.clock.now_ns())
        self.latency = Histogram()
        self.batch_sizes = BatchSizes()
        self.rejects: Counter[str] = Counter()  # inputs of rejected requests, by reason
        self.accepted = 0  # inputs of requests that could be read; kept apart from what ended
        self.ended = [0] * len(EndState)
        self.answer_ids = itertools.count(1)
        self.chance = random.Random(settings.seed)
        self.started_ns = self.clock.now_ns()
        self.load_s = 0.0  # what the model took to load
        self.starts = 1  # how often a supervisor has started the server, this time included
        self.is_ready = False  # takes requests; whether it says so is `unready`
        self.is_leaving = False  # tells probes that it is not ready, and may still take requests
        self.is_draining = False
        self.sleeper: GilSleeper | None = None
        self.front: Front | None = None  # of the service port: it must know when the limits of HTTP change
        self.loss = ""  # why the device is lost; the process is ending then
        self.on_loss: Callable[[], None] = lambda: None
        self.on_change: Callable[[ServerSettings], None] = lambda settings: None  # other settings are in force
        self._loop = loop
        self._outbox = Outbox(loop)
        self._plant = Plant(
            model=model, device=device, outbox=self._outbox, books=self.books, on_lost=self._on_lost_device
        )
        self._changing = asyncio.Lock()  # one change of settings at a time
        self.pipeline = build(settings, self._plant)
        self.slow_log = self._open_slow_log(settings)
        _set_switch_interval(settings)

    async def start(self) -> None:
        """Warm the workers up and take requests; raises TargetFailed."""
        await asyncio.to_thread(self.pipeline.start)
        move_to(self.pipeline.background)
        _log_cautions(self.settings)
        self.is_ready = True

    def not_ready(self) -> Rejected:
        """Why no request is taken at present."""
        if self.loss:
            return LOST
        return _DRAINING if self.is_leaving else STARTING

    def unready(self) -> Rejected | None:
        """Why a readiness probe is told no; None when it is told yes."""
        if not self.is_ready or self.is_leaving:
            return self.not_ready()
        unfit = self.pipeline.unfit()
        return unfit or (self.pipeline.gate.closed_to_all() if self.pipeline.gate else None)

    def _on_lost_device(self, why: str) -> None:
        self._loop.call_soon_threadsafe(self._lose, why)

    def _lose(self, why: str) -> None:
        if not self.loss:
            self.loss = why or "no reason was given"
            self.is_ready = False
            _log.critical("the device is lost: %s", why)
            self.on_loss()

    def leave(self) -> None:
        """Tell readiness probes no from now on; requests are still taken, until `drain`."""
        self.is_leaving = True

    async def reconfigure(self, changes: Mapping[str, Any]) -> ServerSettings:
        """Serve at another setting (dotted names) without reloading the model; no request is lost or rejected for it.

        The new pipeline is warm before it takes over; the old one finishes what it has. Raises
        ConfigError when a changed setting needs a restart, TargetFailed when the new pipeline cannot start.
        """
        async with self._changing:
            before, settings = self.settings, fields.replace(self.settings, changes)
            if stuck := fields.needs_restart(before, settings):
                names = ", ".join(stuck)
                raise ConfigError(f"{names} cannot change while the server runs; start it again with the new value")
            if self.is_draining:
                raise ConfigError("the service is shutting down; its settings cannot change any more")
            successor = build(settings, self._plant)
            await asyncio.to_thread(successor.start)
            predecessor, self.pipeline, self.settings = self.pipeline, successor, settings
            move_to(successor.background)
            self.on_change(settings)
            if self.front is not None:
                self.front.limits = settings.http
            await asyncio.to_thread(predecessor.close)
            _log_cautions(settings)
            _set_switch_interval(settings)
            if settings.log != before.log:
                await self._close_slow_log()
                self.slow_log = self._open_slow_log(settings)
            return settings

    async def drain(self) -> None:
        """Admit nothing more and finish what was admitted."""
        self.leave()
        self.is_draining = True
        self.is_ready = False
        async with self._changing:
            await asyncio.to_thread(self.pipeline.close)
            await self._close_slow_log()

    def close(self) -> None:
        """Give back what was taken of the system; after `drain`, when the last answers have left."""
        self._outbox.close()

    def _open_slow_log(self, settings: ServerSettings) -> SlowRequestLog | None:
        if settings.log.slow_s is None and settings.log.slow_ratio is None:
            return None
        log = SlowRequestLog(settings.log, self.books.requests)
        log.start()
        return log

    async def _close_slow_log(self) -> None:
        log, self.slow_log = self.slow_log, None
        if log is not None:
            await asyncio.to_thread(log.close)

    def record_gil_waits(self, wanted: bool) -> None:
        """Start or end the thread that measures how long a thread waits for the GIL. It costs about 2 % of a core."""
        if wanted and self.sleeper is None:
            self.sleeper = GilSleeper()
            self.sleeper.start()
        elif not wanted and self.sleeper is not None:
            self.sleeper.stop()
            self.sleeper = None

    def stats(self) -> dict[str, Any]:
        """Counters, gauges and identity of the service at this instant."""
        now_ns = self.clock.now_ns()
        reading = self.gauge.read(now_ns)
        max_size, max_delay_s = self.pipeline.batching()
        ended = {state.label: self.ended[state] for state in EndState if state is not EndState.OPEN}
        return {
            "schema": 1,
            "simulated": self.device.is_simulated,
            "model": self.settings.model,
            "payloads": getattr(self.model, "payloads", None),
            "device": {
                "name": self.device.name,
                "uuid": getattr(self.device, "uuid", None),  # of a real GPU
                "effective_threads": list(self.pipeline.effective_threads),
                "effective_cpus": self.pipeline.worker_cpus(),
                "memory": dataclasses.asdict(self.device.memory()),
                "figures": self.device.stats(),
            },
            "cores": {"usable": self._plant.cores.usable, "background": cpus_of(threading.get_native_id())},
            "processes": self.pipeline.processes(),
            "is_ready": self.unready() is None,
            "process": {"pid": os.getpid(), "starts": self.starts, "load_s": self.load_s},
            "uptime_s": (now_ns - self.started_ns) / NS_PER_S,
            "cpu_s": (process_cpu_ns() + children_cpu_ns()) / NS_PER_S,
            "gauge": {"time_ns": now_ns, "in_flight": reading.in_flight, "area_ns": reading.area_ns},
            "queued": self.pipeline.queued,
            "admitted": self.pipeline.admitted,
            "lanes": self.pipeline.lane_stats(),
            "resident": self.pipeline.resident(),
            "batch_cap": self.pipeline.batch_cap,
            "deaths": dict(zip(("count", "vacant"), self.pipeline.deaths_so_far(), strict=True)),
            "batching": {"policy": self.settings.batch.policy, "max_size": max_size, "max_delay_s": max_delay_s},
            "execution": executed.stats(self.model, self.settings),
            "warnings": cautions(self.settings),
            "gate": self.pipeline.gate.stats() if self.pipeline.gate else None,
            "crew": {
                "model": self.settings.concurrency.model,
                **dataclasses.asdict(self.pipeline.headcount()),
                "resting": self.pipeline.resting(),
                "replica_loads": self.pipeline.loads(),
            },
            "counters": {"accepted": self.accepted, **ended},
            "rejects": dict(self.rejects),
            "http_errors": self.front.errors if self.front is not None else 0,
            "ledger": {
                "requests": self.books.requests.closed,
                "batches": self.books.batches.closed,
                "open_requests": self.books.requests.in_use,
                "open_batches": self.books.batches.in_use,
                "is_stamped": self.books.requests.stamps,
                "capacity": self.settings.ledger.capacity,
            },
            "switch_interval_s": sys.getswitchinterval(),
            "slow_requests": {
                "written": self.slow_log.written if self.slow_log is not None else 0,
                "dropped": self.slow_log.dropped if self.slow_log is not None else 0,
            },
            "threads": {str(thread.native_id): thread.name for thread in threading.enumerate()},
        }
