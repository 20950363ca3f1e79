"""What does a model worker's thread do? Take a batch, serve it at its station; until there is nothing more to take."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.station import Bench, Station

Sitting = TypeVar("Sitting")


class Source(Protocol[Sitting]):
    """Where a worker's batches come from: the dispatcher, unless told otherwise."""

    def new_seat(self) -> Sitting:
        """What one worker needs to take."""

    def take(self, seat: Sitting) -> Taken | None:
        """Block until there is a batch; None = leave."""


class Worker:
    """One named thread with its own lane to the device."""

    def __init__(self, name: str, bench: Bench, source: Source[Any] | None = None) -> None:
        self.ready: Future[int] = Future()  # the effective intra-op threads, or why the worker cannot start
        self._bench = bench
        self._source: Source[Any] = source or bench.dispatcher
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; `ready` tells how it went."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the worker has left; close the dispatcher first."""
        self._thread.join()

    def _live(self) -> None:
        station = open_warm(self._thread.name, self._bench, self.ready)
        if station is None:
            return
        take, seat = self._source.take, self._source.new_seat()
        while (taken := take(seat)) is not None:
            station.serve(taken)
        station.close()


def open_warm(name: str, bench: Bench, ready: Future[int]) -> Station | None:
    """A warm station for the calling thread; None when it cannot be had. `ready` tells the owner either way."""
    station = None
    try:
        station = Station(name, bench)
        station.warm_up()
        effective_threads = station.effective_threads
    except BaseException as error:  # a model may even call sys.exit(); it reaches the owner through `ready`
        if station is not None:
            station.close()
        ready.set_exception(error)
        return None
    ready.set_result(effective_threads)
    return station
