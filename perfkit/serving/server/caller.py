"""What happens when the thread that brings a request has to run it too?

Java's CallerRunsPolicy. The thread here is the event loop, so that nothing is accepted, read or
answered until the model is done with the request: that is the back-pressure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from perfkit.records import EndState
from perfkit.serving.instrument import columns as c
from perfkit.serving.server.deaths import give_up
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.station import Bench, Station

_NAME = "caller"


class Caller:
    """A worker without a thread: runs jobs on the calling one, every stage inline. For one thread."""

    def __init__(self, bench: Bench) -> None:
        self._bench = dataclasses.replace(bench, preprocesses_inline=True, postprocess_pool=None)

    def run(self, jobs: Sequence[Job], max_size: int) -> None:
        """Run the jobs in batches of at most `max_size`; all have ended afterwards and are in the outbox."""
        bench = self._bench
        # Opened each time: a lane belongs to a thread, and this one outlives every setting.
        try:
            self._serve(Station(_NAME, bench), jobs, max_size)
        except BaseException as error:  # of the device; this thread is the event loop's and must not end with it
            left = [job for job in jobs if job.end_state is EndState.OPEN]
            give_up(left, error)
            bench.outbox.put(left)
            bench.deaths.record(_NAME, error)

    def _serve(self, station: Station, jobs: Sequence[Job], max_size: int) -> None:
        requests = self._bench.requests
        try:
            for first in range(0, len(jobs), max_size):
                batch = list(jobs[first : first + max_size])
                now_ns = requests.now_ns()
                for job in batch:
                    requests.cells[job.row + c.PREPROCESS_QUEUED] = now_ns
                station.serve(Taken(batch, now_ns, now_ns, now_ns))
        finally:
            station.close()
