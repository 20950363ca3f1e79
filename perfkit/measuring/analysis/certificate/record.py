"""What went on beside the run that may have moved its numbers? Written down, never a reason to drop the run.

Hoefler and Belli (SC 2015): the noise of a machine stands beside the number. Only stolen time above 5 % is more,
and has a self-test of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfkit import units
from perfkit.measuring.analysis.certificate.entry import Entry, recorded
from perfkit.measuring.analysis.instants import overlap_ns, relative_ns
from perfkit.measuring.analysis.series import counter_rate, server_cores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perfkit.measuring.analysis.latency import Quantile
    from perfkit.measuring.analysis.measured import Measured
    from perfkit.measuring.analysis.rundata import RunData

PRESSURE_FLAG = 0.10  # judgement: tasks that wait for a core for a tenth of the time may have been the service's
THROTTLED_FLAG = 0.01  # judgement
_NOISE_ORIGIN = "recorded, gates nothing"
_CEILING_ORIGIN = "estimate: requests over CPU time of the generator, one core; 3 times the rate is comfortable"
_CLIENT_ORIGIN = "shown, gates nothing: completions times mean latency is biased by the window's edges"


def record_surroundings(
    run: RunData, measured: Measured, latency: Mapping[str, Quantile], service_latency: Mapping[str, Quantile]
) -> list[Entry]:
    """What is written down beside the numbers."""
    seen = [_omission(latency, service_latency), _client_little(run, measured), _generator_ceiling(run)]
    return [*seen, *record_noise(run, measured)]


def _omission(latency: Mapping[str, Quantile], service_latency: Mapping[str, Quantile]) -> Entry:
    """P99 from the schedule over P99 from the send: what a generator that waits would have hidden."""
    intended, sent = latency["p99"].value, service_latency["p99"].value
    ratio = intended / sent if intended is not None and sent else None
    figures = {"p99_over_from_send": ratio, "p99_from_send_s": sent}
    return recorded("coordinated omission", figures, "latency counts from the schedule; wrk2 tells why")


def _client_little(run: RunData, measured: Measured) -> Entry:
    finite = measured.latency_s[np.isfinite(measured.latency_s)]
    spans = [(window.start_ns, window.end_ns) for window in measured.windows]
    length_ns = sum(end - start for start, end in spans)
    if not len(finite) or length_ns <= 0 or measured.throughput_rps is None:
        return recorded("Little at the client", {"residual_ratio": None}, _CLIENT_ORIGIN)
    scheduled, received = (relative_ns(run.requests, name, run.started_ns) for name in ("scheduled", "received"))
    mean = sum(float(overlap_ns(scheduled, received, span).sum()) for span in spans) / length_ns
    product = measured.throughput_rps * float(finite.mean())
    figures = {"residual_ratio": abs(mean - product) / mean if mean > 0 else None, "in_flight": mean}
    return recorded("Little at the client", figures, _CLIENT_ORIGIN)


def _generator_ceiling(run: RunData) -> Entry:
    """What the generator could send at most, were its core its own and each request as dear as in this run."""
    cpu_s, wall_s, sent = (
        sum(float(report[name]) for report in run.generator_reports) for name in ("cpu_s", "wall_s", "sent")
    )
    ceiling = sent / cpu_s if cpu_s > 0 else None
    figures = {"ceiling_rps": ceiling, "over_rate": ceiling * wall_s / sent if ceiling and sent else None}
    return recorded("generator ceiling", figures, _CEILING_ORIGIN)


def record_noise(run: RunData, measured: Measured) -> list[Entry]:
    """Pressure, throttling, other processes, and how the cores were governed."""
    pressure = {
        f"{resource}_some_ratio": counter_rate(run, measured.windows, "host", f"pressure_{resource}_some")
        for resource in ("cpu", "io", "memory")
    }
    throttled = {"throttled_ratio": counter_rate(run, measured.windows, "host", "throttled")}
    governed: dict[str, float | str | None] = {
        "governor": run.environment.get("governor"),
        "load_average": run.environment.get("load_average"),
    }
    return [
        recorded("pressure", pressure, _NOISE_ORIGIN, _flag(pressure["cpu_some_ratio"], PRESSURE_FLAG, "waited")),
        recorded("throttling", throttled, _NOISE_ORIGIN, _flag(throttled["throttled_ratio"], THROTTLED_FLAG, "quota")),
        recorded("neighbours", {"cores": _others_cores(run, measured)}, _NOISE_ORIGIN),
        recorded("machine", governed, _NOISE_ORIGIN),
    ]


_FLAGS = {"waited": "tasks waited for a core for {} of the time", "quota": "the quota held tasks back for {} of it"}


def _flag(figure: float | None, most: float, kind: str) -> str:
    return _FLAGS[kind].format(units.format_percent(figure)) if figure is not None and figure > most else ""


def _others_cores(run: RunData, measured: Measured) -> float | None:
    """Cores that neither server nor generator kept busy."""
    cores = {str(source) for source in run.series.loc[run.series["name"] == "busy", "source"]}
    rates = [counter_rate(run, measured.windows, core, "busy") for core in sorted(cores) if core.startswith("core:")]
    known = [rate for rate in rates if rate is not None]
    own = server_cores(run, measured.windows)
    wall_s = sum(float(report["wall_s"]) for report in run.generator_reports)
    if not known or own is None or wall_s <= 0:
        return None
    generator = sum(float(report["cpu_s"]) for report in run.generator_reports) / wall_s
    return max(0.0, sum(known) - own - generator)
