"""What does a preset do under a closed loop, computed in virtual time instead of waited for?

The same timeline that real threads drive is driven here by N customers without think time and W
workers: each worker carries one request at a time through the preset's host and device work. For use as
a library; the tests hold the presets against queueing theory and published tables with it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from perfkit.clock import NS_PER_S
from perfkit.serving.devices.simulated.engine import Stream
from perfkit.serving.devices.simulated.preset import Preset
from perfkit.serving.devices.simulated.service import ServiceTimes
from perfkit.serving.devices.simulated.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRun:
    """A simulated closed-loop run: everything in virtual time."""

    throughput_rps: float
    latencies_ns: list[int]
    busy_ratio: dict[str, float]

    @property
    def mean_latency_s(self) -> float:
        """Mean latency of the requests that completed."""
        return sum(self.latencies_ns) / len(self.latencies_ns) / NS_PER_S

    def latency_s(self, share: float) -> float:
        """The latency that a share of the requests did not exceed: 0.99 for P99."""
        ordered = sorted(self.latencies_ns)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / NS_PER_S


def run_closed(preset: Preset, *, customers: int, workers: int, requests: int, seed: int = 0) -> VirtualRun:
    """Complete a number of requests with N customers and W workers, as fast as the computer can."""
    return _ClosedRun(preset, customers, workers, seed).complete(requests)


class _ClosedRun:
    def __init__(self, preset: Preset, customers: int, workers: int, seed: int) -> None:
        carried = min(customers, workers)
        self._steps = preset.request_steps(carried)
        self._timeline = Timeline(preset.engines, seed)
        self._times = ServiceTimes(seed + 1)
        self._streams = [Stream() for _ in range(carried)]
        self._waiting = deque([0] * (customers - carried))  # arrival instants of requests without a worker
        self._arrived_ns = [0] * carried

    def complete(self, requests: int) -> VirtualRun:
        timeline = self._timeline
        latencies_ns: list[int] = []
        for worker in range(len(self._streams)):
            self._carry(worker, 0)
        while len(latencies_ns) < requests:
            for operation in timeline.step():
                if operation.tag is not None:
                    latencies_ns.append(timeline.now_ns - self._arrived_ns[operation.tag])
                    self._waiting.append(timeline.now_ns)  # no think time: its customer comes back at once
                    self._carry(operation.tag, self._waiting.popleft())
        seconds = timeline.now_ns / NS_PER_S
        busy = {
            name: engine.busy_ns(timeline.now_ns) / timeline.now_ns
            for name, engine in timeline.engines.items()
            if not engine.is_delay
        }
        return VirtualRun(throughput_rps=len(latencies_ns) / seconds, latencies_ns=latencies_ns, busy_ratio=busy)

    def _carry(self, worker: int, arrived_ns: int) -> None:
        """Submit all the work of one request; the stream keeps its order."""
        timeline, stream, draw_ns = self._timeline, self._streams[worker], self._times.draw_ns
        self._arrived_ns[worker] = arrived_ns
        for engine, mean_ns, cv, share in self._steps:
            operation = timeline.submit(stream, engine, draw_ns(mean_ns, cv), timeline.now_ns, share)
        operation.tag = worker
