"""What is known about one point of a scan? The record that tables, curves and scripts read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Interval
    from perfkit.measuring.analysis.calls import CallTimes
    from perfkit.measuring.analysis.certificate import Certificate
    from perfkit.measuring.analysis.gpu import GpuFigures
    from perfkit.measuring.analysis.grading import Grade
    from perfkit.measuring.analysis.latency import Quantile
    from perfkit.measuring.analysis.validity.check import Check


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoundSummary:
    """One round's share of the point."""

    index: int
    seconds: float
    warmup_s: float
    requests: int
    throughput_rps: float
    p50_s: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting under one load. None is "not known", never zero.

    `latency` counts from the schedule, `service_latency` from the actual send. A void point has no result,
    an unsteady one no P99; the raw samples stay in the archive.
    """

    simulated: bool
    settings: Mapping[str, Any]
    varied: Mapping[str, Any]
    load: Mapping[str, Any]
    requests: int
    errors: Mapping[str, int]
    error_ratio: float | None
    throughput: Interval
    throughput_method: str
    latency: Mapping[str, Quantile]
    service_latency: Mapping[str, Quantile]
    stages_s: Mapping[str, float | None]
    batch_fill_ratio: float | None
    padding_ratio: float | None
    in_flight_mean: float | None
    queue_depth_mean: float | None
    wake_lag_s: float | None
    workers_busy_ratio: float | None
    calls: tuple[CallTimes, ...]
    little_residual_ratio: float | None
    cpu_cores_used: float | None
    lateness_p99_s: float | None
    generator_cpu_ratio: float | None
    retried_ratio: float | None = None
    gpus: tuple[GpuFigures, ...] = ()
    trend: str
    rounds: tuple[RoundSummary, ...]
    checks: tuple[Check, ...]
    grade: Grade
    certificate: Certificate

    @property
    def is_valid(self) -> bool:
        """Whether the instruments worked."""
        return self.grade.label != "void"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        same = ("requests", "error_ratio", "batch_fill_ratio", "padding_ratio", "in_flight_mean", "queue_depth_mean")
        more = (
            "wake_lag_s",
            "workers_busy_ratio",
            "little_residual_ratio",
            "cpu_cores_used",
            "throughput_method",
            "trend",
        )
        return {
            "simulated": self.simulated,
            "settings": dict(self.settings),
            "varied": dict(self.varied),
            "load": dict(self.load),
            "errors": dict(self.errors),
            "throughput_rps": self.throughput.to_json(),
            "latency_s": {name: found.to_json() for name, found in self.latency.items()},
            "service_latency_s": {name: found.to_json() for name, found in self.service_latency.items()},
            "stages_s": dict(self.stages_s),
            **{name: getattr(self, name) for name in (*same, *more, "trend")},
            "calls": [one.to_json() for one in self.calls],
            "generator": {
                "lateness_p99_s": self.lateness_p99_s,
                "cpu_ratio": self.generator_cpu_ratio,
                "retried_ratio": self.retried_ratio,
            },
            "gpus": [dataclasses.asdict(one) for one in self.gpus],
            "rounds": [dataclasses.asdict(one) for one in self.rounds],
            "checks": [check.to_json() for check in self.checks],
            "grade": self.grade.label,
            "valid": self.is_valid,
            "reasons": list(self.grade.reasons),
            "certificate": self.certificate.to_json(),
        }
