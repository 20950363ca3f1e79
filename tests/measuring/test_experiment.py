"""Is a measurement whole: its folder, its tables, its point, and what it says when something went wrong?"""

import dataclasses
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from perfkit import fields
from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.format import TABLES
from perfkit.measuring.collectors.collector import Recording, SeriesRow
from perfkit.measuring.collectors.source import read_source
from perfkit.measuring.experiment import instruments, measure, measure_together, open_run, series_table
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.retries import Retries
from perfkit.measuring.service import attach, launch
from perfkit.records import INSTANTS, STAGE_ENDS, STAGES

ROOT = Path(__file__).parents[2]
LOAD = ClosedLoop(concurrency=2)
PROMISED_FIELDS = {
    "simulated",
    "settings",
    "varied",
    "load",
    "requests",
    "errors",
    "throughput_rps",
    "latency_s",
    "stages_s",
    "batch_fill_ratio",
    "in_flight_mean",
    "little_residual_ratio",
    "cpu_cores_used",
    "generator",
    "grade",
    "valid",
    "reasons",
}
FURTHER_FIELDS = {  # additions are fine; a field that goes, or comes, is to be noticed
    "calls",
    "certificate",
    "checks",
    "error_ratio",
    "gpus",
    "memory",
    "padding_ratio",
    "payloads",
    "queue_depth_mean",
    "rounds",
    "service_latency_s",
    "throughput_method",
    "trend",
    "wake_lag_s",
    "workers_busy_ratio",
}
MACHINES_FAULT = {"generator lateness", "generator CPU", "achieved rate", "steal"}
"""The self-tests that a busy machine fails, and not perfkit."""


@pytest.fixture(scope="module")
def run(server, tmp_path_factory):
    """A measurement of the no-op model."""
    return measure(server, LOAD, 0.3, tmp_path_factory.mktemp("runs"))


def test_the_folder_holds_the_promised_files_byte_for_byte(run):
    assert sorted(os.listdir(run.folder)) == [
        "batches.parquet",
        "logs",
        "requests.parquet",
        "run.json",
        "series.parquet",
    ]
    assert os.listdir(run.folder / "logs") == ["server.log"]
    assert verify_run(run.folder) == []
    for name, table in TABLES.items():
        assert list(pd.read_parquet(run.folder / f"{name}.parquet").columns)[: len(table.columns)] == list(
            table.columns
        )


def test_the_manifest_knows_settings_load_environment_and_certificate(run, server):
    manifest = json.loads((run.folder / "run.json").read_text())
    assert manifest["schema"] == 1
    assert manifest["simulated"] is False
    assert manifest["settings"] == fields.to_nested(server.settings)
    assert manifest["load"] == {"loop": "closed", **dataclasses.asdict(LOAD)}
    assert manifest["environment"]["usable_cores"] >= 1
    assert manifest["certificate"] == run.point
    assert manifest["id"] == run.folder.name


def test_the_point_has_exactly_the_promised_fields(run):
    point = run.point
    assert set(point) == PROMISED_FIELDS | FURTHER_FIELDS
    assert set(point["throughput_rps"]) == {"value", "low", "high"}
    assert list(point["latency_s"]) == ["p50", "p95", "p99"]
    assert all(set(one) == {"value", "low", "high", "n", "n_eff", "needs_s"} for one in point["latency_s"].values())
    assert list(point["stages_s"]) == list(STAGES)
    assert set(point["generator"]) == {"lateness_p99_s", "cpu_ratio", "retried_ratio"}
    assert point["grade"] in ("sound", "short", "unsteady", "void")
    assert point["valid"] == (point["grade"] != "void")
    assert json.loads(json.dumps(point, allow_nan=False)) == point


def test_every_request_that_was_sent_is_a_row_with_both_halves_and_the_books_balance(run):
    table, manifest = run.table("requests"), run.stored.manifest
    assert len(table) == manifest.generator_reports[0]["scheduled"] == manifest.generator_reports[0]["sent"]
    assert table["request_id"].is_unique
    assert set(table["end_state"]) == {"ok"}
    halves = [f"{name}_ns" for name in INSTANTS if name == "scheduled" or name in STAGE_ENDS.values()]
    instants = table[halves].dropna(axis=1, how="all")  # the cpu device copies nothing
    assert {"sent_ns", "accepted_ns", "batch_sealed_ns", "compute_ended_ns", "replied_ns"} <= set(instants)
    assert instants.notna().all(axis=None)
    assert (instants.astype("int64").diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    checks = {check["name"]: check["passed"] for check in run.point["checks"]}
    exact = ("client conservation", "server conservation", "replies agree", "ledger complete")
    assert {name: checks[name] for name in exact} == dict.fromkeys(exact, True)


def test_thread_system_and_gil_series_lie_beside_the_requests(run):
    series = run.table("series")
    assert {"gil", "process", "host"} <= set(series["source"])
    assert any(source.startswith("thread:") for source in series["source"])


def test_a_run_is_read_back_as_it_was(run):
    again = open_run(run.folder)
    assert (again.point, again.grade, again.folder) == (run.point, run.grade, run.folder)
    assert again.stacks() == []
    pd.testing.assert_frame_equal(again.table("batches"), run.table("batches"))


def test_a_foreign_service_gets_client_figures_and_nothing_is_invented_for_the_rest(foreign, payloads, tmp_path):
    run = measure(attach(f"{foreign.url}/any/path"), dataclasses.replace(LOAD, payloads=payloads), 0.3, tmp_path)
    point = run.point
    failed = [check["name"] for check in point["checks"] if check["passed"] is False]
    assert set(failed) <= MACHINES_FAULT
    assert point["requests"] > 0
    absent = ("batch_fill_ratio", "padding_ratio", "in_flight_mean", "queue_depth_mean", "little_residual_ratio")
    assert {name: point[name] for name in absent} == dict.fromkeys(absent)
    assert point["cpu_cores_used"] is None
    known = {"send", "receive"}
    assert {stage for stage, mean in point["stages_s"].items() if mean is not None} <= known
    assert point["settings"] == {}
    assert len(run.table("batches")) == len(run.table("series")) == 0
    assert run.stored.logs == ()
    unknown = "not recorded, the service's process is not known"
    assert run.stored.manifest.notes == [f"system: {unknown}", f"gpu: {unknown}"]


def test_with_its_process_a_foreign_service_is_sampled_and_its_commit_is_recorded(foreign, payloads, tmp_path):
    load = dataclasses.replace(LOAD, payloads=payloads)
    run = measure(attach(foreign.url, os.getpid()), load, 0.3, tmp_path)
    sources = set(run.table("series")["source"])
    assert {"process"} <= sources
    assert any(source.startswith("thread:") for source in sources)
    assert run.stored.manifest.source == read_source(Path.cwd())


def test_a_launched_run_records_the_state_of_its_models_code(run):
    assert run.stored.manifest.source == read_source(ROOT)


def test_an_attached_perfkit_server_is_somebody_elses_too_and_runs_go_below_the_working_folder(
    server, payloads, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = measure(attach(server.url), dataclasses.replace(LOAD, payloads=payloads), 0.1)
    assert os.listdir(tmp_path / "perfkit-runs") == [run.folder.name]
    assert set(run.table("requests")["end_state"]) == {"ok"}
    assert run.table("requests")["accepted_ns"].isna().all()


def test_a_service_that_stalls_makes_its_clients_give_up_and_every_request_is_accounted_for(
    planted_models, payloads, tmp_path
):
    load = ClosedLoop(concurrency=2, payloads=payloads, reply_timeout_s=0.2)
    with launch(model=f"{planted_models}:Stalled", http={"drain_s": 0.0}) as service:
        run = measure(service, load, 0.3, tmp_path)
    table = run.table("requests")
    client = table[table["scheduled_ns"].notna()]
    assert len(client) == run.stored.manifest.generator_reports[0]["scheduled"]
    assert set(client["end_state"]) == {"ok", "timed_out"}
    timed_out = client[client["end_state"] == "timed_out"]
    assert set(timed_out["error"]) == {"timed_out"}
    assert timed_out["received_ns"].isna().all()
    assert 0 < run.point["errors"]["timed_out"] <= len(timed_out)


def test_requests_that_the_model_fails_are_errors_with_a_code_and_the_run_stands(planted_models, payloads, tmp_path):
    with launch(model=f"{planted_models}:Faulty") as service:
        run = measure(service, ClosedLoop(concurrency=1, payloads=payloads), 0.3, tmp_path)
    states = run.table("requests")["end_state"]
    assert list(run.point["errors"]) == ["http_500"]
    assert run.point["error_ratio"] == pytest.approx(1 / 3, rel=0.1)
    assert set(states) == {"ok", "failed"}


def test_a_model_that_takes_the_server_down_fails_the_run_in_one_line_and_archives_nothing(
    planted_models, payloads, tmp_path
):
    ends = pytest.raises(TargetFailed, match=r"^the service ended with exit code 9; its last words: .*$")
    with launch(model=f"{planted_models}:Fatal") as service, ends as failure:
        measure(service, dataclasses.replace(LOAD, payloads=payloads), 60.0, tmp_path / "runs")
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "runs").exists()


def test_settings_that_were_changed_meanwhile_are_noted(server, tmp_path):
    changed = []

    def change(progress):
        if not changed:
            changed.append(server.configure({"workers": 3}))

    run = measure(server, LOAD, 0.3, tmp_path, change)
    server.configure({"workers": 1})
    assert run.stored.manifest.settings["workers"] == 1
    note = "settings were changed while this run went on, its figures mix them: workers 1 to 3"
    assert note in run.stored.manifest.notes


def test_a_service_is_watched_by_what_its_kind_allows(server, foreign):
    assert [collector.name for collector in instruments(server)] == ["system", "gpu", "gil-waits"]
    assert [collector.name for collector in instruments(attach(foreign.url))] == ["system", "gpu"]


def test_series_of_all_collectors_are_one_table_also_when_there_are_none():
    rows = [SeriesRow(1, "process", "rss", "bytes", 2.0), SeriesRow(3, "host", "cpu", "s", 0.5)]
    recordings = [
        Recording(name="a", series=rows, files=(), notes=()),
        Recording(name="b", series=[], files=(), notes=()),
    ]
    table = series_table(recordings)
    assert table.to_dict("list") == {
        "time_ns": [1, 3],
        "source": ["process", "host"],
        "name": ["rss", "cpu"],
        "unit": ["bytes", "s"],
        "value": [2.0, 0.5],
    }
    assert series_table([]).dtypes.to_list() == table.dtypes.to_list()


def test_no_time_to_measure_is_refused(server, tmp_path):
    with pytest.raises(ConfigError, match="seconds is 0; it takes a number above 0"):
        measure(server, LOAD, 0, tmp_path)


def failed_checks(run):
    return {check["name"] for check in run.point["checks"] if check["passed"] is False} - MACHINES_FAULT


def test_loads_at_the_same_time_are_a_run_each_with_their_own_requests_and_in_the_same_seconds(server, tmp_path):
    loads = {"solo": ClosedLoop(), "flood": OpenLoop(rate_rps=200, arrivals="constant")}
    runs = measure_together(server, loads, 0.3, tmp_path)
    assert list(runs) == ["solo", "flood"]
    own = {name: run.table("requests").dropna(subset="scheduled_ns") for name, run in runs.items()}
    assert not set(own["solo"]["request_id"]) & set(own["flood"]["request_id"])
    assert len(own["flood"]) == 200 * 0.7 - 1  # one gap in front of the first, load is applied for 0.7 s
    assert own["flood"]["accepted_ns"].notna().all()
    assert [failed_checks(run) for run in runs.values()] == [set(), set()]
    beside = runs["solo"].stored.manifest.further["beside"]
    assert [load["rate_rps"] for load in beside] == [200.0]
    assert abs(own["solo"]["scheduled_ns"].min() - own["flood"]["scheduled_ns"].min()) < 0.3e9


def test_no_load_at_all_is_refused(server):
    with pytest.raises(ConfigError, match=r"^measure_together got no loads; give at least one, by name$"):
        measure_together(server, {})


def test_requests_that_were_sent_again_are_one_row_each_and_pass_every_self_test(tmp_path):
    retries = Retries(max_attempts=20, base_s=0.001, cap_s=0.01, budget_ratio=None)
    with launch(model="simulated:s003-threads", workers=1, queue={"depth": 1}) as service:
        run = measure(service, ClosedLoop(concurrency=6, retries=retries, reply_timeout_s=5.0), 1.0, tmp_path)
    requests = run.table("requests")
    own = requests.dropna(subset="scheduled_ns")
    assert own["request_id"].is_unique
    assert own["attempts"].max() > 1
    assert failed_checks(run) == set()
    (report,) = run.stored.manifest.generator_reports
    assert run.point["generator"]["retried_ratio"] == report["retries"]["retried"] / report["scheduled"]
    alone = requests[requests["scheduled_ns"].isna()]
    assert (alone["end_state"] == "rejected").sum() == report["retries"]["errors"]["http_503"] > 0
    assert set(alone["request_id"]) <= set(own["request_id"])


def test_batches_that_the_devices_memory_cut_down_are_said_to_be(planted_models, payloads, tmp_path):
    with launch(model=f"{planted_models}:Hungry", batch={"max_size": 8, "max_delay_s": 0.01}) as service:
        run = measure(service, ClosedLoop(concurrency=8, payloads=payloads), 0.3, tmp_path)
        assert service.stats()["batch_cap"] == 2
    assert run.point["errors"] == {}
    note = "at its end a batch held at most 2 requests, not 8: the device's memory has no room for more"
    assert note in run.stored.manifest.notes


@pytest.mark.slow
def test_fifteen_requests_at_once_exhaust_a_card_that_holds_fourteen_and_are_answered_all_the_same(tmp_path):
    with launch(model="simulated:llama2-7b-a100@0.01", batch={"max_size": 16, "max_delay_s": 0.1}) as service:
        points = [measure(service, ClosedLoop(concurrency=users), 0.6, tmp_path).point for users in (14, 15)]
    assert [point["errors"] for point in points] == [{}, {}]
    assert points[0]["memory"] == {"ooms": 0, "retries": 0, "batch_cap": 16}
    assert (points[1]["memory"]["ooms"] > 0, points[1]["memory"]["batch_cap"]) == (True, 7)


def test_a_gpu_beside_the_run_is_in_its_series_its_manifest_and_its_point(
    server, payloads, tmp_path, nvml_folder, monkeypatch
):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("NVML_STUB_FAIL", "nvmlDeviceGetPcieThroughput=3,field197=3")
    run = measure(server, dataclasses.replace(LOAD, payloads=payloads), 0.5, tmp_path)
    (gpu,) = run.point["gpus"]
    assert (gpu["name"], gpu["gpu_util_ratio"], gpu["sm_active_ratio"]) == (
        "Stub H200",
        pytest.approx(0.8, abs=0.1),
        0.02,
    )
    assert gpu["energy_per_request_j"] is None  # the no-op model computes on the CPU
    assert list(gpu["missing"]) == ["pcie"]
    assert run.stored.manifest.further["gpu"]["driver"] == "580.00.stub"
    assert {"power", "power_call", "energy"} <= set(run.table("series")["name"])
    assert any("pcie not available" in note for note in run.stored.manifest.notes)


@pytest.mark.slow
def test_energy_a_request_is_that_of_the_gpu_that_cuda_knows_by_the_same_uuid(
    payloads, tmp_path, nvml_folder, monkeypatch
):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "serving" / "devices"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("NVML_STUB_GPUS", "2")
    bodies = tmp_path / "rows.jsonl"
    bodies.write_text(json.dumps({"input": [0.5] * 64}) + "\n")
    with launch(model="gpu_models:OnFake", device="cuda") as service:
        run = measure(service, dataclasses.replace(LOAD, payloads=str(bodies)), 0.6, tmp_path)
    (gpu,) = run.point["gpus"]
    assert gpu["gpu"].endswith("-000000000007")
    assert gpu["energy_per_request_j"] == pytest.approx(650 / run.point["throughput_rps"]["value"], rel=0.1)


def test_a_gpu_that_is_lost_in_the_middle_of_a_run_leaves_the_run_as_it_is(
    server, payloads, tmp_path, nvml_folder, monkeypatch
):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    monkeypatch.setenv("NVML_STUB_FAIL", "nvmlDeviceGetMemoryInfo_v2=15@3")
    run = measure(server, dataclasses.replace(LOAD, payloads=payloads), 0.5, tmp_path)
    assert run.point["throughput_rps"]["value"] > 0
    assert run.stored.manifest.further["gpu"]["gpus"][0]["lost"].startswith("the GPU is lost")
    assert len(run.table("series").query("name == 'memory_reserved'")) == 2
    assert any("rows end there" in note for note in run.stored.manifest.notes)


def test_without_a_gpu_one_line_says_why(server, payloads, tmp_path, monkeypatch):
    monkeypatch.setattr("perfkit.measuring.collectors.nvml.library.LIBRARY", "libnvidia-ml.so.of-nobody")
    run = measure(server, dataclasses.replace(LOAD, payloads=payloads), 0.1, tmp_path)
    assert [note for note in run.stored.manifest.notes if note.startswith("gpu: ")] == [
        "gpu: not recorded: no libnvidia-ml.so.1 here; install NVIDIA's driver, or let the container see it (NVML 12)"
    ]
    assert run.point["gpus"] == []


COMPILED = {
    "level": "compile",
    "dtype": "bfloat16",
    "difference": {"difference": 0.00175, "difference_ratio": 0.00967, "allowed_ratio": 0.06},
    "graphs_ready": 3,
    "graphs": 3,
}


@pytest.mark.parametrize("graphs", [3, 4])
def test_a_run_is_void_when_the_server_compiled_meanwhile_and_only_then(
    server, payloads, tmp_path, monkeypatch, graphs
):
    own = server.stats
    monkeypatch.setattr(server, "stats", lambda: own() | {"execution": COMPILED | {"graphs": graphs}})
    run = measure(server, ClosedLoop(concurrency=1, payloads=payloads), 0.3, tmp_path)
    reason = "the server compiled the model again under load; its figures measure the compiler too"
    assert (reason in run.point["reasons"]) == (graphs == 4)
    note = "execution.level compile in bfloat16 differs from eager float32 by at most 0.00175, 0.00967 of the largest "
    assert [text for text in run.stored.manifest.notes if text.startswith(note)] == [
        f"{note}output; 0.06 of it is allowed"
    ]
