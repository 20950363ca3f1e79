"""How do replicas share a device that has not got room for all their copies of the model?

Each replica has a copy of the weights in the host's memory; `resident.models` of them are on the device. A worker
that has sealed a batch gets its replica's copy there first: it waits for a slot, loads the copy in place of the one
that was used least recently, or finds it there. That stall is the stage `model_load` of the ledger. All copies are
equal, and the model's call computes with the weights that it loaded itself: what is real is the copying and the wait.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perfkit.clock import NS_PER_S, Clock
from perfkit.errors import ConfigError
from perfkit.serving.devices.device import Device, OutOfDeviceMemory
from perfkit.serving.devices.lane import Lane
from perfkit.serving.devices.weights import Size, WeightStore
from perfkit.serving.instrument import columns as c
from perfkit.serving.instrument.cpulap import CpuLap
from perfkit.serving.scheduling.residency import Residency, Stand, Ticket
from perfkit.serving.server.batch_run import BatchRunner, Tools
from perfkit.serving.server.job import Job


class Residents:
    """The slots of the device and who is in them. Safe for any thread between `open` and `close`."""

    def __init__(self, model: Any, device: Device, clock: Clock, size: Size) -> None:
        """Raises ConfigError for a model that does not offer its weights."""
        if getattr(model, "weights", None) is None:
            raise ConfigError(
                f"resident.models is {size.slots} with a model that does not say what its weights are; give the model "
                "a method weights() that returns its arrays, or set resident.models = none"
            )
        self._model = model
        self._device = device
        self._clock = clock
        self._size = size
        self._store: WeightStore | None = None
        self._residency = Residency(size.slots, size.copies)
        self._turns = threading.Condition()  # guards _residency, _waited_ns and _loading_ns
        self._waited_ns = 0
        self._loading_ns = 0

    def open(self) -> None:
        """Make the copies and the slots; raises ConfigError when the device has no room for them. Takes its time."""
        try:
            self._store = WeightStore(self._device, self._model.weights(), self._size)
        except OutOfDeviceMemory as error:
            raise ConfigError(
                f"resident.models is {self._size.slots}, for which the device is too small: {error}"
            ) from None

    def close(self) -> None:
        """Give the memory back; nobody may hold a copy."""
        if self._store is not None:
            self._store.close()

    @contextlib.contextmanager
    def holding(self, copy: int) -> Iterator[None]:
        """Have a copy on the device for as long as the block runs; raises what the device raises."""
        ticket = self._claim(copy)
        if ticket.stand is Stand.LOAD:
            self._load(ticket)
        try:
            yield
        finally:
            with self._turns:
                self._residency.hand_back(ticket)
                self._turns.notify_all()

    def stats(self) -> dict[str, Any]:
        """Which copies are on the device, how often one had to come, and what that cost all workers together."""
        with self._turns:
            return {
                "on_device": sorted(self._residency.resident),
                "waiting": self._residency.waiting,
                "loads": self._residency.loads,
                "weights_bytes": self._store.nbytes if self._store else 0,
                "waited_s": self._waited_ns / NS_PER_S,
                "loading_s": self._loading_ns / NS_PER_S,
            }

    def _claim(self, copy: int) -> Ticket:
        asked_ns = self._clock.now_ns()
        with self._turns:
            ticket = self._residency.ask(copy)
            while ticket.stand in (Stand.WAITING, Stand.LOADING):
                self._clock.wait(self._turns, None)
            self._waited_ns += self._clock.now_ns() - asked_ns
            return ticket

    def _load(self, ticket: Ticket) -> None:
        started_ns = self._clock.now_ns()
        assert ticket.slot is not None, "whoever is told to load has a slot"
        assert self._store is not None, "workers start after the slots were opened"
        try:
            self._store.fill(ticket.slot, ticket.copy)
        except BaseException:
            self._tell(self._residency.failed, ticket, started_ns)
            raise
        self._tell(self._residency.loaded, ticket, started_ns)

    def _tell(self, news: Callable[[Ticket], None], ticket: Ticket, started_ns: int) -> None:
        with self._turns:
            news(ticket)
            self._loading_ns += self._clock.now_ns() - started_ns
            self._turns.notify_all()


class ResidentRunner(BatchRunner):
    """A worker of a replica whose copy may have to come to the device first."""

    def __init__(self, bench: Tools, lane: Lane | None, residents: Residents, copy: int) -> None:
        super().__init__(bench, lane)
        self._residents = residents
        self._copy = copy

    def _call(self, jobs: Sequence[Job], row: int, cpu: CpuLap) -> tuple[Sequence[Job], Sequence[Any]]:
        # Before collating, after which it is looked once more who is still wanted: a load may take longer than that.
        self._is_in_device = True
        with self._residents.holding(self._copy):
            self._is_in_device = False
            self._batches.cells[row + c.B_MODEL_LOADED] = self._batches.now_ns()
            return super()._call(jobs, row, cpu)
