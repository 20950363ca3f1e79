"""What does /metrics say? The service's counters and gauges in Prometheus' text format, base units."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from perfkit.clock import NS_PER_S
from perfkit.serving.scheduling.breaker import BreakerState
from perfkit.serving.server.histogram import BOUNDS_S, SIZE_BOUNDS

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class _ServiceCollector(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        stats = self._service.stats()
        yield from self._counters(stats)
        yield from self._gauges(stats)
        yield from _gate(stats["gate"] or {})
        yield self._latency()
        yield self._batch_sizes()

    def _counters(self, stats: dict[str, Any]) -> Iterator[Metric]:
        ended = CounterMetricFamily("perfkit_requests", "Requests by how they ended.", labels=["end_state"])
        for state, count in stats["counters"].items():
            if state != "accepted":
                ended.add_metric([state], count)
        yield ended
        rejects = CounterMetricFamily(
            "perfkit_rejects", "Requests that were not admitted, by reason.", labels=["reason"]
        )
        for reason, count in stats["rejects"].items():
            rejects.add_metric([reason], count)
        yield rejects
        slow = CounterMetricFamily("perfkit_slow_requests", "Slow requests, told in the log or not.", labels=["fate"])
        for fate, count in stats["slow_requests"].items():
            slow.add_metric([fate], count)
        yield slow
        starts = stats["crew"]["started"]
        yield CounterMetricFamily("perfkit_worker_starts", "Model worker threads started, at this setting.", starts)
        yield CounterMetricFamily(
            "perfkit_thread_deaths", "Threads that died, at this setting.", stats["deaths"]["count"]
        )
        deaths = sum(child["deaths"] for child in stats["processes"])
        yield CounterMetricFamily("perfkit_process_deaths", "Child processes that died, at this setting.", deaths)
        yield CounterMetricFamily("perfkit_http_errors", "Requests that never became whole.", stats["http_errors"])

    def _gauges(self, stats: dict[str, Any]) -> Iterator[Metric]:
        settings = self._service.settings
        gauges = {
            "perfkit_requests_in_flight": ("Requests accepted and not yet answered.", stats["gauge"]["in_flight"]),
            "perfkit_requests_admitted": ("Requests admitted and not yet in a batch.", stats["admitted"]),
            "perfkit_queue_depth": ("Requests that wait for a model worker.", stats["queued"]),
            "perfkit_workers": ("Model worker threads.", stats["crew"]["current"]),
            "perfkit_workers_peak": ("Most model worker threads at once, at this setting.", stats["crew"]["peak"]),
            "perfkit_workers_vacant": ("Model workers that died and are not replaced yet.", stats["deaths"]["vacant"]),
            "perfkit_processes": (
                "Child processes that are ready.",
                sum(child["pid"] is not None for child in stats["processes"]),
            ),
            "perfkit_batch_max_size": ("Most requests in one call of the model.", settings.batch.max_size),
            "perfkit_batch_cap": ("As many of them as the device's memory holds.", stats["batch_cap"]),
            "perfkit_server_starts": ("Starts of the server by its supervisor.", stats["process"]["starts"]),
            "perfkit_ready": ("1 when requests are taken.", int(stats["is_ready"])),
            "perfkit_simulated": ("1 when the device is simulated.", int(stats["simulated"])),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
        yield _worker_states(stats)
        yield _device(stats)
        lanes = GaugeMetricFamily("perfkit_lane_queue_depth", "Requests of a lane that wait.", labels=["lane"])
        for name, counts in (stats["lanes"] or {}).items():
            lanes.add_metric([name], counts["queued"])
        yield lanes

    def _latency(self) -> Metric:
        histogram = self._service.latency
        family = HistogramMetricFamily("perfkit_request_seconds", "Time from accepted to replied.")
        family.add_metric([], _cumulated(BOUNDS_S, histogram.counts), histogram.sum_ns / NS_PER_S)
        return family

    def _batch_sizes(self) -> Metric:
        sizes = self._service.batch_sizes
        family = HistogramMetricFamily("perfkit_batch_size", "Requests in one call of the model.")
        family.add_metric([], _cumulated(SIZE_BOUNDS, [*sizes.buckets(), 0.0]), sizes.requests)
        return family


def _worker_states(stats: dict[str, Any]) -> Metric:
    """Readings of threads that work on meanwhile: a busy one may have come to rest between the two."""
    crew, vacant = stats["crew"], stats["deaths"]["vacant"]
    counts = {"resting": crew["resting"], "busy": max(0, crew["current"] - crew["resting"]), "vacant": vacant}
    family = GaugeMetricFamily("perfkit_worker_states", "Model worker threads by what they do.", labels=["state"])
    for state, count in counts.items():
        family.add_metric([state], count)
    return family


def _device(stats: dict[str, Any]) -> Metric:
    text = "What the device says of itself; the unit ends the figure's name."
    family = GaugeMetricFamily("perfkit_device", text, labels=["figure"])
    for name, value in stats["device"]["figures"].items():
        family.add_metric([name], value)
    return family


def _gate(gate: dict[str, Any]) -> Iterator[Metric]:
    """Where the guards stand that there are."""
    family = GaugeMetricFamily("perfkit_breaker", "1 for the state of a lane's breaker.", labels=["lane", "state"])
    for lane, current in gate.get("breakers", {}).items():
        for state in BreakerState:
            family.add_metric([lane, state.value], int(state.value == current))
    yield family
    if gate.get("concurrency_limit") is not None:
        yield GaugeMetricFamily("perfkit_concurrency_limit", "Most inputs in hand, now.", gate["concurrency_limit"])
        yield GaugeMetricFamily("perfkit_inputs_in_hand", "Inputs admitted and not yet answered.", gate["in_hand"])


def _cumulated(bounds: Sequence[float], counts: Sequence[float]) -> list[tuple[str, float]]:
    return list(zip([*map(str, bounds), "+Inf"], itertools.accumulate(counts), strict=True))


def render(service: Service) -> bytes:
    """The whole page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_ServiceCollector(service))
    ProcessCollector(registry=registry)  # CPU time, memory and open files under their customary names
    return generate_latest(registry)
