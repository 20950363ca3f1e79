"""How does a fixed number of threads staff the queue? All start together and stay until the end."""

from __future__ import annotations

from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.job import Job
from perfkit.serving.server.station import Bench
from perfkit.serving.server.worker import Worker


class FixedCrew:
    """Workers that take from the dispatcher, each with a station of its own (`pool`; one of them is `serial`)."""

    only_queues = True

    def __init__(self, bench: Bench, size: int) -> None:
        self.admit = bench.dispatcher.admit
        self.put = bench.dispatcher.put
        self._dispatcher = bench.dispatcher
        self._workers = [Worker(f"{bench.name}-{index}", bench) for index in range(size)]

    def start(self) -> tuple[int, ...]:
        """Start every worker and wait until all are warm."""
        for worker in self._workers:
            worker.start()
        return tuple(worker.ready.result() for worker in self._workers)

    def takes(self, job: Job) -> bool:
        """Nobody is there for one job alone."""
        return False

    def close(self) -> None:
        """Let the queue run empty; the workers leave."""
        self._dispatcher.close()
        for worker in self._workers:
            worker.join()

    def headcount(self) -> Headcount:
        """As many as were asked for; the successors of those that died are started too."""
        size = len(self._workers)
        return Headcount(current=size, peak=size, started=sum(worker.started for worker in self._workers))
