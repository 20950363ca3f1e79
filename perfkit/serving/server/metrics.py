"""What does /metrics say? The service's counters and gauges in Prometheus' text format, base units."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from perfkit.clock import NS_PER_S
from perfkit.serving.server.histogram import BOUNDS_S

if TYPE_CHECKING:
    from perfkit.serving.server.service import Service

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class _ServiceCollector(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        service = self._service
        stats = service.stats()
        ended = CounterMetricFamily("perfkit_requests", "Requests by how they ended.", labels=["end_state"])
        for state, count in stats["counters"].items():
            if state != "accepted":
                ended.add_metric([state], count)
        yield ended
        yield CounterMetricFamily("perfkit_batches", "Calls of the model.", stats["ledger"]["batches"])
        yield CounterMetricFamily("perfkit_process_cpu_seconds", "CPU time of the server process.", stats["cpu_s"])
        gauges = {
            "perfkit_requests_in_flight": ("Requests accepted and not yet answered.", stats["gauge"]["in_flight"]),
            "perfkit_queue_depth": ("Requests that wait for a model worker.", stats["queued"]),
            "perfkit_workers": ("Model worker threads.", service.settings.workers),
            "perfkit_ready": ("1 when requests are taken.", int(stats["is_ready"])),
            "perfkit_simulated": ("1 when the device is simulated.", int(stats["simulated"])),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
        yield self._latency()

    def _latency(self) -> Metric:
        histogram = self._service.latency
        bounds = [*map(str, BOUNDS_S), "+Inf"]
        buckets = list(zip(bounds, itertools.accumulate(histogram.counts), strict=True))
        family = HistogramMetricFamily("perfkit_request_seconds", "Time from accepted to replied.")
        family.add_metric([], buckets, histogram.sum_ns / NS_PER_S)
        return family


def render(service: Service) -> bytes:
    """The whole page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_ServiceCollector(service))
    return generate_latest(registry)
