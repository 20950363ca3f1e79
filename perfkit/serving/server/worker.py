"""What does a model worker's thread do? Take a batch, serve it at its station; until there is nothing more to take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from perfkit.serving.server.deaths import give_up
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.post import Post
from perfkit.serving.server.station import Bench, Station

Sitting = TypeVar("Sitting")


class Source(Protocol[Sitting]):
    """Where a worker's batches come from: the dispatcher, unless told otherwise."""

    def new_seat(self) -> Sitting:
        """What one worker needs to take."""

    def take(self, seat: Sitting, patience_ns: int | None = None) -> Taken | None:
        """Block until there is a batch; None = leave, or nothing came for so long."""

    def leave(self, seat: Sitting) -> None:
        """The worker has died, or goes without having been told to."""


class Worker:
    """One named thread with its own lane to the device."""

    def __init__(self, name: str, bench: Bench, source: Source[Any] | None = None) -> None:
        self.ready: Future[int] = Future()  # the effective intra-op threads, or why the worker cannot start
        self._bench = bench
        self._source: Source[Any] = source or bench.dispatcher
        bench.deaths.employ(bench.name)
        self._post = Post(name, self._work, self._await_turn, bench.deaths)

    @property
    def started(self) -> int:
        """Threads that have worked here: more than one when some died."""
        return self._post.started

    def start(self) -> None:
        """Start the thread; `ready` tells how it went."""
        self._post.start()

    def join(self) -> None:
        """Wait until the worker has left; close the dispatcher first."""
        self._post.join()

    def _work(self) -> None:
        name, bench = self._post.name, self._bench
        if not self.ready.done():
            station = open_warm(name, bench, self.ready)
            if station is None:
                return
        else:  # a successor
            station = bench.opens(name, bench)
        try:
            self._take_and_serve(station)
        except BaseException:
            bench.deaths.vacate(name, bench.name)
            raise
        finally:
            station.close()

    def _take_and_serve(self, station: Station) -> None:
        source, deaths = self._source, self._bench.deaths
        if deaths.vacant:
            station.warm_up()
            deaths.fill(self._post.name)
        take, seat = source.take, source.new_seat()
        try:
            self._serve_all(station, take, seat)
        except BaseException:
            source.leave(seat)
            raise

    def _serve_all(self, station: Station, take: Callable[[Any], Taken | None], seat: Any) -> None:
        while (taken := take(seat)) is not None:
            station.serve(taken)

    def _await_turn(self, starts_ns: int) -> bool:
        """Block until a successor may start. Where a crash loop has left no worker, it turns away what comes for them.

        False when the pipeline closes in a crash loop: nothing is left to do then.
        """
        source, deaths = self._source, self._bench.deaths
        seat = source.new_seat()
        while (why := deaths.crash_loop()) and deaths.leaves_nobody(self._bench.name):
            taken = source.take(seat, None if deaths.is_closing else deaths.left_ns(starts_ns))
            if taken is None:
                break
            give_up(taken.jobs, why)
            self._bench.outbox.put(taken.jobs)
        source.leave(seat)
        return deaths.await_turn(starts_ns)


def open_warm(name: str, bench: Bench, ready: Future[int]) -> Station | None:
    """A warm station for the calling thread; None when it cannot be had. `ready` tells the owner either way."""
    station = None
    try:
        station = bench.opens(name, bench)
        station.warm_up()
        effective_threads = station.effective_threads
    except BaseException as error:  # a model may even call sys.exit(); it reaches the owner through `ready`
        if station is not None:
            station.close()
        ready.set_exception(error)
        return None
    ready.set_result(effective_threads)
    return station
