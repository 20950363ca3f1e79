"""What do N threads get through a device when each sends its next request as soon as the last is back?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from perfkit.clock import NS_PER_S
from perfkit.measuring.gpucheck.bench import Bench
from perfkit.measuring.gpucheck.worker import Request, lane, quantile, request, together
from perfkit.serving.devices.lane import Lane

_WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one thread did, from the common start until its last request was back."""

    seconds: float
    requests: tuple[Request, ...]
    launches_ns: tuple[int, ...]  # time of the thread inside the model's call


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What came back, thread by thread."""

    parts: tuple[Part, ...]

    @property
    def threads(self) -> int:
        """How many sent."""
        return len(self.parts)

    @property
    def requests(self) -> list[Request]:
        """All of them."""
        return [one for part in self.parts for one in part.requests]

    @property
    def throughput_rps(self) -> float:
        """Of all threads together; each over its own time, so that no request is cut in two."""
        return sum(len(part.requests) / part.seconds for part in self.parts)

    @property
    def mean_s(self) -> float:
        """Mean latency."""
        return fmean([one.latency_s for one in self.requests])

    @property
    def launch_s(self) -> float:
        """Mean time of a thread inside the model's call."""
        return fmean([launch for part in self.parts for launch in part.launches_ns]) / NS_PER_S

    @property
    def compute_s(self) -> float:
        """Mean time between the events around the computation."""
        spans = [one.instants.compute_ended_ns - one.instants.compute_started_ns for one in self.requests]
        return fmean(spans) / NS_PER_S

    @property
    def little_ratio(self) -> float:
        """Throughput times mean latency against the number of threads; 1 = Little's law holds."""
        return self.throughput_rps * self.mean_s / self.threads

    def wake_lag_s(self, share: float) -> float:
        """A quantile of how late threads went on."""
        return quantile([one.wake_lag_s for one in self.requests], share)


def run_loop(bench: Bench, level: str, threads: int, seconds: float) -> Loop:
    """Every thread with a lane and, at the level of graphs, a graph of its own."""

    def work(number: int, begin: Callable[[], None]) -> Part:
        with lane(bench, f"loop-{number}") as mine:
            return _drive(bench, mine, level, seconds, begin)

    return Loop(parts=tuple(together(threads, work, name="loop")))


def _drive(bench: Bench, mine: Lane, level: str, seconds: float, begin: Callable[[], None]) -> Part:
    now_ns = bench.device.clock.now_ns
    encoder, batch = bench.encoder(level), bench.texts(1, seed=0)
    launches: list[int] = []

    def timed(inputs: object) -> object:
        before_ns = now_ns()
        outputs = encoder(inputs)
        launches.append(now_ns() - before_ns)
        return outputs

    for _ in range(_WARM_UP):
        request(bench, mine, timed, batch)
    launches.clear()
    begin()
    started_ns, served = now_ns(), list[Request]()
    while now_ns() - started_ns < seconds * NS_PER_S:
        served.append(request(bench, mine, timed, batch)[1])
    return Part(seconds=(now_ns() - started_ns) / NS_PER_S, requests=tuple(served), launches_ns=tuple(launches))
