"""What does a scrape of Prometheus metrics say (Triton, vLLM, or any service)?

Counters and histograms since the process started: one scrape gives counts and means, never a rate.
Percentiles of a histogram are read off by interpolation and may be off by the width of a bucket.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfkit.measuring.importers.cells import number
from perfkit.measuring.importers.document import as_figure, count, figure
from perfkit.measuring.importers.imported import Imported, Level, Metric, Tally, Timing
from perfkit.measuring.importers.source import Source

NAME = "Prometheus metrics"
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
_TYPE = re.compile(r"# TYPE (\S+) (\w+)\s*")
_SAMPLE = re.compile(r"[a-zA-Z_:][\w:]*(?:\{.*\})?\s+[-+]?[\d.]\S*.*")
_EXEMPLAR = re.compile(r" # \{.*$")
_BROKEN = "line that is no sample"
_CREATED = "creation time (_created)"
_LIMIT = 20_000
_FULL = f"series beyond the limit of {_LIMIT:,}"
_US = 1e6


def matches(head: str) -> bool:
    """By its comment lines, or by samples only."""
    lines = [line for line in head.splitlines()[:-1] or head.splitlines() if line.strip()]
    if any(_TYPE.fullmatch(line) or line.startswith("# HELP ") for line in lines):
        return True
    named = [line for line in lines if "{" in line and '="' in line]
    return bool(named) and all(_SAMPLE.fullmatch(line) for line in lines)


def read(source: Source) -> Imported:
    """Every sample as a metric; histograms of seconds and Triton's counters as levels too."""
    tally = Tally()
    metrics = list(_metrics(source, tally))
    levels = (*_histograms(metrics), *_triton(metrics))
    notes = [*source.notes, "counts since the process started: rates need the difference of two scrapes"]
    if any(level.is_interpolated for level in levels):
        notes.append("percentiles are interpolated inside a bucket and may be off by its width")
    notes += _batches(metrics)
    return Imported(
        path=str(source.path),
        format=NAME,
        rows=tally.rows(),
        timing=Timing(unit="s, us where the name says so", clock="none", scope="cumulative", basis="none"),
        levels=levels,
        metrics=tuple(metrics),
        notes=tuple(notes),
    )


def _metrics(source: Source, tally: Tally) -> Iterator[Metric]:
    kinds: dict[str, str] = {}
    for line in source.lines():
        if match := _TYPE.fullmatch(line):
            kinds[match[1]] = match[2]
        if not line.strip() or line.startswith("#"):
            continue
        sample = _sample(_EXEMPLAR.sub("", line))
        reason = _BROKEN if sample is None else _CREATED if sample.name.endswith("_created") else ""
        if not reason and tally.kept >= _LIMIT:
            reason = _FULL
        if reason:
            tally.dropped[reason] += 1
            continue
        tally.kept += 1
        yield Metric(name=sample.name, labels=dict(sample.labels), kind=_kind(sample.name, kinds), value=sample.value)


def _sample(line: str) -> Any:
    """The sample in a line; None if it is no sample."""
    from prometheus_client.parser import text_string_to_metric_families

    if not _SAMPLE.fullmatch(line.strip()):
        return None
    try:
        found = [one for family in text_string_to_metric_families(line.strip()) for one in family.samples]
        return found[0]._replace(value=float(found[0].value))
    except (ValueError, KeyError, IndexError, OverflowError):
        return None


def _kind(name: str, kinds: Mapping[str, str]) -> str:
    for end in ("", "_total", "_bucket", "_sum", "_count"):
        if name.endswith(end) and (base := name.removesuffix(end)) in kinds:
            return kinds[base]
    return "unknown"


def _histograms(metrics: Sequence[Metric]) -> Iterator[Level]:
    """One level for each histogram of seconds and each of its label sets."""
    buckets: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    sums = {(one.name, _labels(one)): one.value for one in metrics if one.name.endswith(("_sum", "_count"))}
    for one in metrics:
        end = _bucket_end(one) if one.name.endswith("_seconds_bucket") else None
        if end is not None:
            buckets[one.name.removesuffix("_bucket"), _labels(one)].append((end, one.value))
    for (name, labels), steps in buckets.items():
        requests = as_figure(sums.get((f"{name}_count", labels)))
        total_s = as_figure(sums.get((f"{name}_sum", labels)))
        if not requests or total_s is None:
            continue
        found = {p: value for p in PERCENTILES if (value := interpolated(sorted(steps), p)) is not None}
        yield Level(
            name=f"{name} {labels}".strip(),
            requests=int(requests),
            mean_s=total_s / requests,
            percentiles_s=found,
            is_interpolated=True,
        )


def interpolated(steps: Sequence[tuple[float, float]], p: float) -> float | None:
    """A percentile from cumulative buckets (upper end, count); None where it lies in the last, endless one."""
    wanted = p * steps[-1][1]
    low, below = 0.0, 0.0
    for high, reached in steps:
        if reached >= wanted and reached > below:
            return None if high == float("inf") else low + (high - low) * (wanted - below) / (reached - below)
        low, below = high, reached
    return None


def _triton(metrics: Sequence[Metric]) -> Iterator[Level]:
    """One level a model, over all its GPUs."""
    for model, values in _model_sums(metrics).items():
        good, failed = count(values, "nv_inference_request_success"), count(values, "nv_inference_request_failure")
        spent_s = figure(values, "nv_inference_request_duration_us", _US)
        if good:
            mean_s = None if spent_s is None else spent_s / good
            yield Level(name=model, requests=good + (failed or 0), errors=failed, mean_s=mean_s)


def _batches(metrics: Sequence[Metric]) -> Iterator[str]:
    for model, values in _model_sums(metrics).items():
        executed, inferred = values.get("nv_inference_exec_count"), values.get("nv_inference_count")
        requests, queued = values.get("nv_inference_request_success"), values.get("nv_inference_queue_duration_us")
        if executed and inferred and requests:
            waited = "" if queued is None else f", mean queue time {queued / requests:.3g} us"
            yield f"{model}: average batch {inferred / executed:.3g}{waited}"


def _model_sums(metrics: Sequence[Metric]) -> dict[str, dict[str, float]]:
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in metrics:
        if one.name.startswith("nv_inference_") and "model" in one.labels:
            sums[one.labels["model"]][one.name] += one.value
    return sums


def _bucket_end(metric: Metric) -> float | None:
    label = metric.labels.get("le", "")
    return float("inf") if label == "+Inf" else number(label)


def _labels(metric: Metric) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(metric.labels.items()) if name != "le")
