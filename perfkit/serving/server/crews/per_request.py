"""What does a thread for each request cost? One is started when the request comes, and ends with its answer.

Nothing queues: the wait before preprocess is the start of the thread and of its lane to the device, and
the ledger shows it as `preprocess_wait`. A job counts as admitted until its answer leaves, so
`queue.depth` bounds the requests that have a thread.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from perfkit.serving.scheduling.decisions import CallerRuns, Parked, Rejected
from perfkit.serving.server.crews.crew import Headcount
from perfkit.serving.server.crews.newcomer import fail_unserved, open_for, serve_at
from perfkit.serving.server.crews.roster import Roster
from perfkit.serving.server.job import Job
from perfkit.serving.server.outbox import Counted
from perfkit.serving.server.station import Bench
from perfkit.serving.server.worker import open_warm


class ThreadPerRequest:
    """A crew that nobody belongs to for longer than one request."""

    only_queues = False

    def __init__(self, bench: Bench) -> None:
        self.put = bench.dispatcher.put  # never used: `takes` says yes
        self._dispatcher = bench.dispatcher
        self._outbox = bench.outbox
        self._clock = bench.device.clock
        self._unserved: deque[Job] = deque()  # admitted, and ended because no thread could start
        # Out of the count before the answer leaves: its client may send the next request at once.
        self._bench = dataclasses.replace(bench, outbox=Counted(bench.outbox, bench.dispatcher.finish))
        self._roster = Roster(bench.name, bench.deaths)

    def start(self) -> tuple[int, ...]:
        """Warm the model up on a thread as a request will have it."""
        return (warm_up_once(self._bench),)

    def admit(self, jobs: Sequence[Job]) -> Rejected | Parked | CallerRuns | None:
        """As many as `queue.depth` may have a thread."""
        while self._unserved:
            self._dispatcher.finish([self._unserved.popleft()])
        return self._dispatcher.admit(jobs)

    def takes(self, job: Job) -> bool:
        """Start the job's thread."""
        job.queued_ns = self._clock.now_ns()
        try:
            self._roster.start(functools.partial(self._serve, job))
        except RuntimeError:
            fail_unserved([job], self._outbox)
            self._unserved.append(job)  # the count is the dispatcher's, whose lock may be held here
        return True

    def close(self) -> None:
        """Admit nothing more and wait for the last thread."""
        self._dispatcher.close()
        self._roster.join()

    def headcount(self) -> Headcount:
        """Requests that have a thread, and had."""
        return self._roster.headcount()

    def _serve(self, job: Job, name: str) -> None:
        station = open_for([job], name, self._bench)
        if station is None:
            return
        try:
            serve_at(station, job, self._bench)
        finally:
            station.close()


def warm_up_once(bench: Bench) -> int:
    """Warm the model up on a thread that ends again; its effective intra-op threads. Raises what the model raises."""
    ready: Future[int] = Future()

    def work(name: str) -> None:
        station = open_warm(name, bench, ready)
        if station is not None:
            station.close()

    roster = Roster(bench.name, bench.deaths)  # not the crew's own: nobody is served on it
    roster.start(work)
    roster.join()
    return ready.result()
