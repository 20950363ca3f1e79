"""How does a thread that was started for one request serve it? Without a queue in between."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.records import EndState
from perfkit.serving.server.deaths import give_up
from perfkit.serving.server.dispatcher import Taken
from perfkit.serving.server.job import Job
from perfkit.serving.server.outbox import Exit
from perfkit.serving.server.station import Bench, Station


def open_for(jobs: Sequence[Job], name: str, bench: Bench) -> Station | None:
    """A station for the calling thread; None when it cannot be had, and the jobs have ended with the reason."""
    try:
        return Station(name, bench)
    except BaseException as error:  # whatever the device's code raises must not leave a request behind
        give_up(jobs, error)
        bench.outbox.put(jobs)
        bench.deaths.record(name, error)
        return None


def serve_at(station: Station, job: Job, bench: Bench) -> None:
    """Carry the job through. Its thread was made for it, so nobody kept it waiting and no window was open."""
    now_ns = bench.device.clock.now_ns()
    station.serve(Taken([job], free_ns=job.queued_ns, due_ns=job.queued_ns, taken_ns=now_ns))


def fail_unserved(jobs: Sequence[Job], outbox: Exit) -> None:
    """No thread could be had for these jobs: they end with that."""
    for job in jobs:
        job.end(EndState.FAILED, "no_thread", "no thread could start for the request; lower queue.depth or elastic.max")
    outbox.put(jobs)
