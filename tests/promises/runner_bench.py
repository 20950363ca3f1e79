"""A batch runner on the test's own thread, over a model that fails as the batch tells it to."""

from __future__ import annotations

from types import SimpleNamespace

from perfkit.clock import ManualClock
from perfkit.serving.devices.cpu import CpuDevice
from perfkit.serving.devices.device import OutOfDeviceMemory
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.server.adapter import complete
from perfkit.serving.server.batch_run import BatchRunner
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.plant import Books
from perfkit.serving.server.room import Room
from perfkit.settings.surroundings import LedgerSettings

TAKEN = Taken([], 1, 1, 1)


class Model:
    """Answers what it is asked, unless the batch holds poison; counts its calls."""

    def __init__(self, fits=1 << 20):
        self.fits = fits
        self.sizes = []

    def predict(self, inputs):
        self.sizes.append(len(inputs))
        if len(inputs) > self.fits:
            raise OutOfDeviceMemory(f"{len(inputs)} do not fit")
        if "raise" in inputs:
            raise ValueError("poison")
        return [item for item in inputs if item != "drop"]


class Bench:
    """A runner on the test's own thread."""

    def __init__(self, model, *, most=64, checks_outputs=False, device=None):
        self.clock = ManualClock(start_ns=1)
        self.books = Books(LedgerSettings(capacity=1 << 14))
        self.room = Room(most, self.clock)
        model = complete(model)
        tools = SimpleNamespace(
            model=model,
            collate=model.collate,
            requests=self.books.requests,
            batches=self.books.batches,
            batch_ids=self.books.batch_ids,
            room=self.room,
            checks_outputs=checks_outputs,
        )
        self.device = device or CpuDevice()
        self.lane = self.device.open_lane("model-0")
        self.runner = BatchRunner(tools, self.lane)

    def run(self, items):
        """The jobs of one batch, and what came back for each: its output, or None when it ended with an error."""
        requests = self.books.requests
        jobs = [Job(item, receiver=None, row=requests.open(), deadline_ns=0) for item in items]
        for job in jobs:
            job.item = job.payload
        try:
            ended = self.runner.run(jobs, TAKEN, CpuLap(requests.cpu_ns))
        finally:
            self.device.leave_worker()  # the thread is the test's
        answered = {id(job): output for job, output in ended}
        for job in jobs:
            requests.close(job.row)
        return jobs, [answered.get(id(job)) for job in jobs]
