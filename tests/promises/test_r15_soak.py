"""R15: do memory, threads and descriptors stay flat, however many requests there were?

The slope of resident memory over requests is Theil and Sen's (the median of all pairwise slopes) with its 95 %
interval. Target: over 10^6 requests the interval ends at 1 byte a request or below; the same measure flags a leak
of 1 KB a request in 20 runs of 20.
"""

from __future__ import annotations

import dataclasses

import psutil
import pytest
from scipy.stats import theilslopes

from perfkit.measuring.load.loops import ClosedLoop

TARGET = "slope's upper bound <= 1 B/request; threads and descriptors constant; 1 KB/request flagged 20/20"
MOST_BYTES_PER_REQUEST = 1.0
SHORT_BYTES_PER_REQUEST = 50.0  # what 10,000 requests can tell from the allocator's steps
SMALL_LEDGER = {"ledger.capacity": 1024}  # it fills its pages as it is written for the first time


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """What was seen: bytes a request with its interval, and the ranges of threads and descriptors."""

    requests: int
    slope: float
    low: float
    high: float
    grown_bytes: int
    threads: tuple[int, int]
    descriptors: tuple[int, int]

    @property
    def is_leak(self):
        """Whether even a short run shows that memory grows with requests."""
        return self.low > SHORT_BYTES_PER_REQUEST

    @property
    def figures(self):
        """For the table."""
        shown = dataclasses.asdict(self)
        return {("bytes_per_request" if name == "slope" else name): value for name, value in shown.items()}


def soak(server, generator, *, after, until, pause_s):
    """Watch a server under load, from so many requests on until so many."""
    process, rows = psutil.Process(server.pid), []
    while (served := server.stats()["counters"]["ok"]) < until:
        assert not generator.wait_briefly(pause_s), "the load ended too soon"
        if served >= after:
            rows.append((served, process.memory_info().rss, process.num_threads(), process.num_fds()))
    requests, memory, threads, descriptors = zip(*rows, strict=True)
    slope, _, low, high = theilslopes(memory, requests, 0.95)
    return Soak(
        requests=until,
        slope=float(slope),
        low=float(low),
        high=float(high),
        grown_bytes=memory[-1] - memory[0],
        threads=(min(threads), max(threads)),
        descriptors=(min(descriptors), max(descriptors)),
    )


def soak_leaky(serve, generate):
    """The control: a model that keeps 1 KB of each request."""
    server = serve("promise_models:Leaky", changes=SMALL_LEDGER)
    generator = generate(server, ClosedLoop(concurrency=8), 60.0, "leak")
    try:
        return soak(server, generator, after=1_000, until=4_000, pause_s=0.02)
    finally:
        generator.stop()
        server.process.kill()


def test_a_short_soak_shows_no_leak(serve, generate, told):
    server = serve(changes=SMALL_LEDGER)
    generator = generate(server, ClosedLoop(concurrency=8), 60.0)
    found = soak(server, generator, after=5_000, until=15_000, pause_s=0.05)
    told("R15", f"a leak above {SHORT_BYTES_PER_REQUEST:g} B/request would show in a run so short", **found.figures)
    assert not found.is_leak
    assert found.threads[0] == found.threads[1]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("keep_alive", [True, False])
def test_over_a_million_requests_nothing_grows(serve, generate, told, keep_alive):
    """On connections that stay; and, a tenth as often, on a new one for each request."""
    requests = 1_000_000 if keep_alive else 100_000
    server = serve(changes={} if keep_alive else SMALL_LEDGER)
    generator = generate(server, ClosedLoop(concurrency=16, keep_alive=keep_alive), 1000.0)
    found = soak(server, generator, after=requests // 4, until=requests, pause_s=0.5)
    told("R15", TARGET, keep_alive=keep_alive, **found.figures)
    assert found.high <= MOST_BYTES_PER_REQUEST
    assert found.threads[0] == found.threads[1]
    assert found.descriptors[1] - found.descriptors[0] <= 32  # connections come and go


def test_a_leak_of_a_kilobyte_a_request_is_flagged(serve, generate):
    """The control of the tests above."""
    assert soak_leaky(serve, generate).is_leak


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_leak_of_a_kilobyte_a_request_is_flagged_in_twenty_runs_of_twenty(serve, generate, told):
    flagged = [soak_leaky(serve, generate).is_leak for _ in range(20)]
    told("R15", TARGET, leaks_flagged=sum(flagged), runs=20)
    assert sum(flagged) == 20
