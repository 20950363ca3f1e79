"""What does a run come to? From tables to one point with intervals, self-tests and a grade."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from perfkit.measuring.analysis.blocks import Interval
from perfkit.measuring.analysis.calls import call_times, occupation, workers_busy_ratio
from perfkit.measuring.analysis.certificate import (
    Certificate,
    certify_instruments,
    certify_steadiness,
    certify_sufficiency,
    record_surroundings,
)
from perfkit.measuring.analysis.gpu import gpu_figures
from perfkit.measuring.analysis.latency import Quantile, at_probability, quantile
from perfkit.measuring.analysis.ledger import fill_ratio, padding_ratio, stage_means, stage_table
from perfkit.measuring.analysis.measured import Measured, measure_windows
from perfkit.measuring.analysis.occupancy import in_flight_mean, queue_depth_mean, wake_lag_s, windowed_batches
from perfkit.measuring.analysis.point import Point, RoundSummary
from perfkit.measuring.analysis.relaxation import needed_seconds
from perfkit.measuring.analysis.series import server_cores
from perfkit.measuring.analysis.steady import judge_steadiness
from perfkit.measuring.analysis.throughput import CLOSED_METHOD, OPEN_METHOD, throughput
from perfkit.measuring.analysis.validity import run_checks
from perfkit.measuring.analysis.validity.generator import generator_cpu_ratio, lateness_p99_s, retried_ratio
from perfkit.measuring.analysis.validity.stamps import served_rows
from perfkit.measuring.analysis.warmup import OK

if TYPE_CHECKING:
    from perfkit.measuring.analysis.blocks import Floats
    from perfkit.measuring.analysis.rundata import RunData

QUANTILES: dict[str, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def summarise(run: RunData, varied: Mapping[str, Any] | None = None) -> Point:
    """One point of a scan; `varied` names what the scan changed, for the point to carry along."""
    measured = measure_windows(run)
    checks = run_checks(run, measured)
    steadiness = judge_steadiness(measured, run.think_s, run.is_closed_loop)
    latency = _certified(_quantiles(measured.latency_s, measured), needed_seconds(run, measured), measured.seconds)
    service_latency = _quantiles(measured.service_s, measured)
    certificate = Certificate(
        entries=(
            *certify_instruments(run, measured, checks),
            *certify_steadiness(run, measured, steadiness),
            *certify_sufficiency(run, measured, (steadiness, latency)),
            *record_surroundings(run, measured, latency, service_latency),
        )
    ).withheld()
    batches, kept = windowed_batches(run, measured), occupation(run)
    point = Point(
        simulated=run.simulated,
        settings=run.settings or {},
        varied=varied or {},
        load=run.load,
        requests=len(measured.rows),
        errors=_errors(measured),
        error_ratio=_error_ratio(measured),
        throughput=throughput(measured, run.think_s, run.is_closed_loop),
        throughput_method=CLOSED_METHOD if run.is_closed_loop else OPEN_METHOD,
        latency=latency,
        service_latency=service_latency,
        stages_s=stage_means(stage_table(_answered(measured))),
        batch_fill_ratio=fill_ratio(batches, run.max_batch),
        padding_ratio=padding_ratio(batches),
        in_flight_mean=in_flight_mean(run, measured),
        queue_depth_mean=queue_depth_mean(run, measured),
        wake_lag_s=wake_lag_s(run, batches),
        workers_busy_ratio=workers_busy_ratio(kept, measured),
        calls=call_times(kept, measured),
        little_residual_ratio=next(check.figure for check in checks if check.name == "Little"),
        cpu_cores_used=server_cores(run, measured.windows),
        lateness_p99_s=lateness_p99_s(run, measured),
        generator_cpu_ratio=generator_cpu_ratio(run),
        retried_ratio=retried_ratio(run),
        gpus=gpu_figures(run, measured),
        trend=steadiness.trend,
        rounds=_round_summaries(measured),
        checks=checks,
        grade=certificate.grade,
        certificate=certificate,
    )
    return _withheld(point)


def _quantiles(seconds: Floats, measured: Measured) -> dict[str, Quantile]:
    return {name: quantile(seconds, measured.sizes, p, measured.seconds) for name, p in QUANTILES.items()}


def _certified(found: dict[str, Quantile], needs_s: float | None, seconds: float) -> dict[str, Quantile]:
    """Takes the value of P99 away when an open loop has not run for 300 relaxation times."""
    tail = found["p99"]
    if needs_s is None or not np.isfinite(needs_s) or seconds >= needs_s or tail.n == 0:
        return found
    return found | {"p99": dataclasses.replace(tail, value=None, needs_s=max(needs_s, tail.needs_s or 0.0))}


def _answered(measured: Measured) -> Any:
    """Good replies with the server's half where there is one, else all good replies."""
    served = served_rows(measured)
    return served if len(served) else measured.rows[(measured.rows["end_state"] == OK).to_numpy(dtype=bool)]


def _errors(measured: Measured) -> dict[str, int]:
    failed = measured.rows[(measured.rows["end_state"] != OK).to_numpy(dtype=bool)]
    codes = failed["error"].where(failed["error"].fillna("") != "", failed["end_state"])
    return {str(code): int(count) for code, count in codes.value_counts().sort_index().items()}


def _error_ratio(measured: Measured) -> float | None:
    return sum(_errors(measured).values()) / len(measured.rows) if len(measured.rows) else None


def _round_summaries(measured: Measured) -> tuple[RoundSummary, ...]:
    edges = np.cumsum([0, *measured.sizes])
    found = []
    for place, window in enumerate(measured.windows):
        part = np.sort(measured.latency_s[edges[place] : edges[place + 1]])
        middle = at_probability(part, 0.5) if len(part) else float("inf")
        found.append(
            RoundSummary(
                index=window.round,
                seconds=window.seconds,
                warmup_s=window.warmup_s,
                requests=len(part),
                throughput_rps=len(measured.replies_ns[place]) / window.seconds,
                p50_s=middle if np.isfinite(middle) else None,
            )
        )
    return tuple(found)


def _withheld(point: Point) -> Point:
    """No result from a void run, no steady-state P99 from an unsteady one."""
    if point.grade.label == "void":
        nothing = Interval(value=None, low=None, high=None)
        return dataclasses.replace(
            point,
            throughput=nothing,
            latency=_emptied(point.latency),
            service_latency=_emptied(point.service_latency),
            gpus=tuple(dataclasses.replace(gpu, energy_per_request_j=None) for gpu in point.gpus),
        )
    if point.grade.label == "unsteady":
        return dataclasses.replace(
            point, latency=_without_tail(point.latency), service_latency=_without_tail(point.service_latency)
        )
    return point


def _emptied(found: Mapping[str, Quantile]) -> dict[str, Quantile]:
    return {
        name: dataclasses.replace(one, value=None, low=None, high=None, needs_s=None) for name, one in found.items()
    }


def _without_tail(found: Mapping[str, Quantile]) -> dict[str, Quantile]:
    return dict(found) | {"p99": dataclasses.replace(found["p99"], value=None, high=None, needs_s=None)}
