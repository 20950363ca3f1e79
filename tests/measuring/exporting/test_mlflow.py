"""Does a run arrive in a real MLflow store, and what is said where MLflow is missing?"""

from __future__ import annotations

import sys

import pytest
from mlflow.tracking import MlflowClient

from perfkit.errors import ArchiveError, EnvironmentLacks
from perfkit.measuring.archive.entries import read_entry
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.exporting.mlflow import EXPERIMENT, log_to_mlflow
from perfkit.measuring.exporting.subject import subject_of


def test_settings_are_parameters_figures_metrics_and_the_folder_an_artifact(tiny, tmp_path):
    store = str(tmp_path / "mlruns")
    (run_id,) = log_to_mlflow(subject_of(read_entry(tiny.path)), store)
    client = MlflowClient(tracking_uri=store)
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert client.get_experiment(run.info.experiment_id).name == EXPERIMENT
    assert run.data.params["server.batch.max_size"] == "2"
    assert run.data.params["load.concurrency"] == "3"
    assert (run.data.metrics["throughput_rps.value"], run.data.metrics["errors.queue_full"]) == (2.0, 2.0)
    assert "latency_s.p99.value" not in run.data.metrics  # null is absent, not zero
    assert run.data.tags["perfkit.grade"] == "short"
    assert run.data.tags["perfkit.simulated"] == "true"
    kept = tmp_path / "mlruns" / run.info.experiment_id / run_id / "artifacts" / "run"
    assert verify_run(kept) == []


def test_each_point_of_a_scan_is_a_run_of_the_same_experiment(tiny_scan, tmp_path):
    store = str(tmp_path / "mlruns")
    ids = log_to_mlflow(subject_of(tiny_scan), store)
    client = MlflowClient(tracking_uri=store)
    assert [client.get_run(one).info.run_name for one in ids] == ["scan-1-000", "scan-1-001"]
    assert [client.get_run(one).data.tags["perfkit.grade"] for one in ids] == ["sound", "void"]
    log_to_mlflow(subject_of(tiny_scan, 1), store)
    assert len(client.search_experiments(filter_string=f"name = '{EXPERIMENT}'")) == 1


def test_a_store_that_refuses_is_an_error_with_its_words(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match=r"MLflow at .*file/mlruns refused: "):
        log_to_mlflow(subject_of(read_entry(tiny.path)), str(tmp_path / "file" / "mlruns"))


def test_without_the_library_the_extra_is_named(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    with pytest.raises(EnvironmentLacks, match=r"MLflow is not installed .*; pip install 'perfkit\[mlflow\]'"):
        log_to_mlflow(subject_of(read_entry(tiny.path)), str(tmp_path / "mlruns"))
