"""How do model versions, settings and machines stand side by side? One row each, from an archive.

The columns are those that the platform sketch in the articles keeps of every release: throughput, P99 and GPU use,
and for the choice of hardware how many users it carries at which latency. Here each figure is the median of its runs,
beside how many there are and how far they lie apart, since a row of a single run says nothing about its neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfkit import fields
from perfkit.measuring.analysis.compare.replicate import METRICS
from perfkit.measuring.archive.manifest import Manifest
from perfkit.measuring.comparing.history import figure_of, grouped
from perfkit.units import ABSENT

if TYPE_CHECKING:
    import pandas

_COMMIT = 10  # letters of a commit's name
_VERSION = ("commit", "dirty")
COLUMNS = (
    "model",
    "version",
    "settings",
    "load",
    "hardware",
    "users",
    "throughput_rps",
    "spread_ratio",
    "p50_s",
    "p95_s",
    "p99_s",
    "gpu_util_ratio",
    "cpu_cores_used",
    "error_ratio",
    "runs",
    "void",
    "grades",
    "latest",
    "simulated",
)


def snapshot_table(manifests: Sequence[Manifest]) -> pandas.DataFrame:
    """A row for each model, version, setting, load and machine; columns as in COLUMNS, absent figures null.

    `settings` names what differs from the model's defaults; `spread_ratio` is (most - least) / median throughput
    over the runs; `users` is the concurrency of a closed loop, or the mean in flight of an open one.
    """
    import pandas

    rows = [_row(runs) for runs in grouped(manifests, *_VERSION).values()]
    table = pandas.DataFrame(rows, columns=list(COLUMNS))
    return table.sort_values(["model", "hardware", "load", "settings", "latest"], ignore_index=True)


def _row(runs: Sequence[Manifest]) -> dict[str, Any]:
    newest = runs[-1]
    certificates = [run.certificate or {} for run in runs]
    counted = [one for one in certificates if one.get("grade") != "void"]
    rates = [one["throughput_rps"]["value"] for one in counted if one["throughput_rps"]["value"]]
    figures = {metric.name: _median([figure_of(one, metric) for one in counted]) for metric in METRICS}
    return {
        "model": str(newest.settings.get("model") or newest.title or ABSENT),
        "version": version_text(newest.source),
        "settings": settings_text(newest.settings),
        "load": load_text(newest.load),
        "hardware": hardware_text(newest),
        "users": _users(newest.load, counted),
        **figures,
        "spread_ratio": (max(rates) - min(rates)) / figures["throughput_rps"] if len(rates) > 1 else None,
        "gpu_util_ratio": _median([gpu.get("gpu_util_ratio") for one in counted for gpu in one.get("gpus") or ()]),
        "cpu_cores_used": _median([one.get("cpu_cores_used") for one in counted]),
        "error_ratio": _median([one.get("error_ratio") for one in counted]),
        "runs": len(runs),
        "void": len(runs) - len(counted),
        "grades": ", ".join(sorted({str(one.get("grade")) for one in certificates})),
        "latest": newest.created,
        "simulated": newest.simulated,
    }


def _median(values: Sequence[float | None]) -> float | None:
    import statistics

    known = [float(value) for value in values if value is not None]
    return statistics.median(known) if known else None


def _users(load: Mapping[str, Any], counted: Sequence[Mapping[str, Any]]) -> float | None:
    if load.get("loop") == "closed":
        return float(load["concurrency"])
    return _median([one.get("in_flight_mean") for one in counted])


def version_text(source: Mapping[str, Any]) -> str:
    """Which code was measured: `3a430ad1b2`, with a plus where files differed from the commit."""
    commit = source.get("commit")
    return f"{str(commit)[:_COMMIT]}{'+' if source.get('dirty') else ''}" if commit else ABSENT


def settings_text(settings: Mapping[str, Any]) -> str:
    """What differs from the defaults of the same model: `workers=4, batch.max_size=8`."""
    from perfkit.errors import ConfigError
    from perfkit.serving.server.defaults import settings_for
    from perfkit.settings.server import ServerSettings

    if not settings:
        return ABSENT
    try:
        record = fields.from_nested(ServerSettings, dict(settings))
        changes = fields.changes(settings_for(record.model, {}), record)
    except ConfigError:  # a setting or a preset that this version does not have
        return "settings of another version"
    return ", ".join(f"{name}={value}" for name, value in changes.items() if name != "seed") or "default"


def load_text(load: Mapping[str, Any]) -> str:
    """`closed, 8 users` or `open, 120 req/s`."""
    from perfkit.units import format_rate

    if load.get("loop") == "closed":
        return f"closed, {load['concurrency']} users"
    return f"open, {format_rate(load['rate_rps'])}" if load.get("loop") == "open" else ABSENT


def hardware_text(manifest: Manifest) -> str:
    """The GPU where one was recorded, and cores with the processor's name."""
    environment = manifest.environment
    gpus = [str(gpu.get("name")) for gpu in (manifest.certificate or {}).get("gpus") or () if gpu.get("name")]
    cores = environment.get("usable_cores")
    processor = f"{cores if cores is not None else ABSENT} × {environment.get('cpu_model') or 'cores'}"
    return " + ".join([*dict.fromkeys(gpus), processor])
