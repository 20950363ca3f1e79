"""How does a run get into MLflow? Settings as parameters, figures as metrics, the run folder as artifacts.

Needs the extra `mlflow`. One MLflow run for each run, or for each point of a scan.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from perfkit.errors import ArchiveError, EnvironmentLacks
from perfkit.measuring.archive.folder import StoredRun
from perfkit.measuring.exporting.subject import Subject
from perfkit.measuring.exporting.tables import flatten

EXPERIMENT = "perfkit"
_NAME = re.compile(r"[^\w./ -]")  # what MLflow refuses in the name of a parameter or metric
_MOST_PARAM_TEXT = 6000  # MLflow's own limit
_MS_PER_S = 1000


def log_to_mlflow(subject: Subject, uri: str, experiment: str = EXPERIMENT) -> list[str]:
    """Write to a tracking server or a folder (a path or any URI that MLflow takes); returns the MLflow runs' ids.

    Raises EnvironmentLacks without the library, ArchiveError when the store refuses.
    """
    make = _client_class()
    try:
        client = make(tracking_uri=uri)
        known = client.get_experiment_by_name(experiment)
        place = known.experiment_id if known else client.create_experiment(experiment)
        return [
            _log(client, place, run, point, f"{subject.entry.id}{f'-{number:03d}' if subject.has_points else ''}")
            for number, run, point in zip(subject.numbers, subject.runs, subject.points, strict=True)
        ]
    except Exception as error:  # the library raises kinds of its own and those of its many stores
        raise ArchiveError(f"MLflow at {uri} refused: {error}; check the address and that it may be written") from error


def parameters(run: StoredRun) -> dict[str, str]:
    """Settings and load by dotted name, as texts."""
    nested = {"server": run.manifest.settings, "load": run.manifest.load}
    return {_NAME.sub("_", name): str(value)[:_MOST_PARAM_TEXT] for name, value in flatten(nested)}


def metrics(point: Mapping[str, Any]) -> dict[str, float]:
    """Every number of a point by dotted name; what is not known is left out, never zero."""
    figures = {name: value for name, value in point.items() if name not in ("settings", "load", "varied")}
    return {
        _NAME.sub("_", name): float(value)
        for name, value in flatten(figures)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _client_class() -> Any:
    """The library's client. Two settings of its own are made where nobody has: an export tells nobody but its target,
    and a folder is as good a target as a database to whoever names one."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise EnvironmentLacks(f"MLflow is not installed ({error}); pip install 'perfkit[mlflow]'") from error
    return MlflowClient


def _log(client: Any, place: str, run: StoredRun, point: Mapping[str, Any], name: str) -> str:
    from mlflow.entities import Metric, Param

    at_ms = round(datetime.fromisoformat(run.manifest.created).timestamp() * _MS_PER_S)
    made = client.create_run(place, start_time=at_ms, run_name=name, tags=_tags(run, point))
    params = [Param(key, value) for key, value in parameters(run).items()]
    figures = [Metric(key, value, at_ms, 0) for key, value in metrics(point).items()]
    client.log_batch(made.info.run_id, metrics=figures, params=params)
    client.log_artifacts(made.info.run_id, str(run.path), "run")
    client.set_terminated(made.info.run_id, end_time=at_ms)
    return str(made.info.run_id)


def _tags(run: StoredRun, point: Mapping[str, Any]) -> dict[str, str]:
    tags = {"perfkit.run": run.manifest.id, "perfkit.simulated": str(run.manifest.simulated).lower()}
    if "grade" in point:
        tags |= {"perfkit.grade": str(point["grade"]), "perfkit.reasons": "; ".join(point.get("reasons", ()))}
    commit = run.manifest.source.get("commit")
    return tags | ({"mlflow.source.git.commit": str(commit)} if commit else {})
