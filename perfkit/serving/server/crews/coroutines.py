"""What does the usual asyncio pattern cost? Coroutines take from the queue and hand each batch to an executor.

As many coroutines as there are executor threads live on an event loop with a thread of its own. A request
makes three hops that a plain worker does not: it wakes that loop, the loop wakes a thread of the executor,
and that thread wakes the loop again before the coroutine takes the next batch. The first two lie before
preprocess and show as `preprocess_wait` (as `batch_wait` when preprocess has a pool of its own); the third
delays the next batch.
"""

from __future__ import annotations

import asyncio
import contextlib

from perfkit.clock import NS_PER_S, Clock
from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.crews.handover import Handover
from perfkit.serving.server.dispatcher import Dispatcher, Rest, Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.post import Post
from perfkit.serving.server.station import Bench
from perfkit.serving.server.worker import Worker


class CoroutineSeat:
    """What one coroutine rests on; notified from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake the coroutine, by way of its loop; one whose loop has died leaves the dispatcher by itself."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._event.set)

    async def rest(self, seconds: float | None) -> None:
        """Until notified, or so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        self._event.clear()


class CoroutineCrew:
    """Coroutines on an event loop over the dispatcher's queue, and executor threads for the blocking calls."""

    only_queues = True

    def __init__(self, bench: Bench, size: int) -> None:
        self.admit = bench.dispatcher.admit
        self.put = bench.dispatcher.put
        self._dispatcher = bench.dispatcher
        self._clock = bench.device.clock
        self._handover = Handover()
        self._workers = [Worker(f"{bench.name}-{index}", bench, self._handover) for index in range(size)]
        self._post = Post(f"{bench.name}-loop", self._run_loop, bench.deaths.await_turn, bench.deaths)

    def start(self) -> tuple[int, ...]:
        """Start the executor's threads, wait until all are warm, then start the loop."""
        for worker in self._workers:
            worker.start()
        effective_threads = tuple(worker.ready.result() for worker in self._workers)
        self._post.start()
        return effective_threads

    def takes(self, job: Job) -> bool:
        """Nobody is there for one job alone."""
        return False

    def close(self) -> None:
        """Let the queue run empty; the coroutines leave, then the threads."""
        self._dispatcher.close()
        self._post.join()
        self._handover.close(len(self._workers))
        for worker in self._workers:
            worker.join()

    def headcount(self) -> Headcount:
        """The executor's threads; the loop's own is one more."""
        size = len(self._workers)
        return Headcount(current=size, peak=size, started=sum(worker.started for worker in self._workers))

    def _run_loop(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in self._workers:
                group.create_task(self._live())

    async def _live(self) -> None:
        seat = CoroutineSeat(asyncio.get_running_loop())
        try:
            while (taken := await take(self._dispatcher, seat, self._clock)) is not None:
                await asyncio.wrap_future(self._handover.submit(taken))
        finally:
            self._dispatcher.leave(seat)


async def take(dispatcher: Dispatcher, seat: CoroutineSeat, clock: Clock) -> Taken | None:
    """A batch for the coroutine; None when the dispatcher is closed and empty."""
    free_ns = clock.now_ns()
    while isinstance(found := dispatcher.look(seat, free_ns), Rest):
        until_ns = found.until_ns
        await seat.rest(None if until_ns is None else max(0, until_ns - clock.now_ns()) / NS_PER_S)
    return found
