"""What outlives every setting of the server: model, device, books, and the way back to the event loop."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable

from perfkit.clock import REAL_CLOCK, Clock
from perfkit.serving.devices.device import Device
from perfkit.serving.instrument.columns import BATCH_COLUMNS, REQUEST_COLUMNS
from perfkit.serving.instrument.ledger import Ledger, SharedLedger
from perfkit.serving.server.model import Model
from perfkit.serving.server.outbox import LoopExit
from perfkit.serving.server.pins import Cores
from perfkit.settings.surroundings import LedgerSettings

_log = logging.getLogger("perfkit.server")


class Books:
    """What the server writes down about its requests and batches, for as long as the process lives."""

    def __init__(self, settings: LedgerSettings) -> None:
        self.requests = Ledger(REQUEST_COLUMNS, settings.capacity, stamps=settings.stamps)
        self.batches = SharedLedger(BATCH_COLUMNS, settings.capacity, stamps=settings.stamps)
        self.batch_ids = itertools.count(1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """What every pipeline of the process works with."""

    model: Model
    device: Device
    outbox: LoopExit
    books: Books
    clock: Clock = REAL_CLOCK
    cores: Cores = dataclasses.field(default_factory=Cores)
    on_lost: Callable[[str], None] = _log.critical  # the device is lost, and why
