"""What does a summary of k6 say (`--summary-export` or handleSummary as JSON)?

Milliseconds always: --summary-time-unit changes the text only. `http_req_failed` counts FAILED requests
as passes. P99 is there only if summaryTrendStats asks for it. Refused connections have duration 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfkit.measuring.importers.document import count, figure, load_object, part
from perfkit.measuring.importers.imported import Imported, Level, Rows, Timing
from perfkit.measuring.importers.source import Source

NAME = "k6 summary JSON"
_GOOD = "http_req_duration{expected_response:true}"
_PERCENTILE = re.compile(r"p\((\d+(?:\.\d+)?)\)")


def matches(head: str) -> bool:
    """By the metrics that every summary of HTTP requests holds."""
    return head.lstrip().startswith("{") and '"root_group"' in head and '"metrics"' in head


def read(source: Source) -> Imported:
    """One level; raises ConfigError on a document that is cut."""
    document = load_object(source, "a k6 summary")
    metrics = {name: _values(metric) for name, metric in part(document, "metrics").items()}
    requests, failed = metrics.get("http_reqs", {}), metrics.get("http_req_failed", {})
    dropped, users = metrics.get("dropped_iterations", {}), metrics.get("vus_max", {})
    latency, good = metrics.get("http_req_duration", {}), metrics.get(_GOOD, {})
    total, errors = count(requests, "count"), count(failed, "passes")
    answered = bool(latency.get("max"))
    level = Level(
        name="run",
        loop="open" if dropped.get("count") else "unknown",
        concurrency=users.get("max"),
        requests=total,
        errors=errors,
        unsent=count(dropped, "count"),
        duration_s=figure(part(document, "state"), "testRunDurationMs", 1e3) or _seconds(requests),
        throughput_rps=requests.get("rate") if answered else 0.0,
        mean_s=_ms(latency.get("avg")) if answered else None,
        min_s=_ms(latency.get("min")) if answered else None,
        max_s=_ms(latency.get("max")) if answered else None,
        percentiles_s=_percentiles(latency) if answered else {},
        good_mean_s=_ms(good.get("avg")) if errors else None,
        error_mean_s=_error_mean_s(latency, good, total, errors),
    )
    notes = [*source.notes, "latency leaves out the time to connect (http_req_duration)"]
    if not answered:
        notes.append("every duration is 0: no request was answered, so there is no latency")
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=Rows(read=1, kept=1, dropped={}),
        timing=Timing(unit="ms", clock="none", scope="cumulative", basis="sent"),
        levels=(level,),
        notes=tuple(notes),
    )


def _values(metric: object) -> dict[str, float]:
    """Flat in an exported summary, under `values` in the data of handleSummary."""
    found = part(metric, "values") or (metric if isinstance(metric, dict) else {})
    return {name: value for name in found if (value := figure(found, name)) is not None}


def _percentiles(latency: Mapping[str, float]) -> dict[float, float]:
    found = {
        round(float(match[1]) / 100, 8): latency[name] for name in latency if (match := _PERCENTILE.fullmatch(name))
    }
    if "med" in latency:
        found[0.5] = latency["med"]
    return {p: value / 1e3 for p, value in sorted(found.items())}


def _error_mean_s(
    latency: Mapping[str, float], good: Mapping[str, float], total: int | None, errors: int | None
) -> float | None:
    """From the means of all and of the good ones."""
    if not total or not errors or total <= errors or "avg" not in latency or "avg" not in good:
        return None
    return max(0.0, (latency["avg"] * total - good["avg"] * (total - errors)) / errors / 1e3)


def _seconds(requests: Mapping[str, float]) -> float | None:
    total, rate = requests.get("count"), requests.get("rate")
    return total / rate if total and rate else None


def _ms(value: float | None) -> float | None:
    return None if value is None else value / 1e3
