"""From tables to a point."""

import dataclasses
import json

import pandas as pd
import pytest

from perfkit.measuring.analysis.grading import PROFILED
from perfkit.measuring.analysis.summary import summarise
from perfkit.records import INSTANTS, STAGES

PROMISED_FIELDS = {
    *(
        "settings",
        "varied",
        "load",
        "requests",
        "errors",
        "throughput_rps",
        "latency_s",
        "stages_s",
        "batch_fill_ratio",
    ),
    *("in_flight_mean", "little_residual_ratio", "cpu_cores_used", "generator", "grade", "valid", "reasons"),
}


@pytest.fixture(scope="module")
def long_run(scenario):
    return scenario(seed=1, shape="normal", users=4, workers=2, seconds=8.0).run()


def foreign(run):
    requests = run.requests.copy()
    requests[[f"{name}_ns" for name in INSTANTS if name not in ("scheduled", "sent", "received")]] = pd.NA
    requests["batch_id"] = pd.NA
    return dataclasses.replace(
        run, requests=requests, batches=run.batches.iloc[:0], counters=[], gauges=[], settings=None
    )


def test_a_long_steady_run_is_sound_and_near_the_truth(long_run):
    point = summarise(long_run, {"workers": 2})
    assert (point.grade.label, point.grade.reasons, point.is_valid) == ("sound", (), True)
    assert point.throughput.value == pytest.approx(200.0, rel=0.02)
    assert point.latency["p50"].value == pytest.approx(0.02, rel=0.05)
    assert point.latency["p99"].low < point.latency["p99"].value <= point.latency["p99"].high
    assert point.queue_depth_mean == pytest.approx(2.0, abs=0.05)
    assert point.padding_ratio == pytest.approx(0.2)
    assert point.varied == {"workers": 2}


def test_json_holds_every_promised_field_and_nothing_that_json_cannot(long_run):
    document = summarise(long_run).to_json()
    assert set(document) >= PROMISED_FIELDS | {"simulated", "rounds", "error_ratio", "checks", "service_latency_s"}
    assert set(document["throughput_rps"]) == {"value", "low", "high"}
    assert set(document["latency_s"]) == {"p50", "p95", "p99"}
    assert tuple(document["stages_s"]) == STAGES
    assert set(document["generator"]) == {"lateness_p99_s", "cpu_ratio", "retried_ratio"}
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_stages_add_up_to_the_mean_latency(long_run):
    point = summarise(long_run)
    users = 4
    mean = sum(mean for mean in point.stages_s.values() if mean is not None)
    assert mean == pytest.approx(users / point.throughput.value, rel=0.02)


def test_a_service_of_somebody_else_gets_its_latency_and_no_invented_ledger(long_run):
    point = summarise(foreign(long_run))
    assert point.grade.label == "sound"
    assert {stage for stage, mean in point.stages_s.items() if mean is not None} == {"send"}
    unknown = (point.batch_fill_ratio, point.in_flight_mean, point.queue_depth_mean, point.little_residual_ratio)
    assert unknown == (None, None, None, None)
    assert point.latency == summarise(long_run).latency


def test_a_profiled_run_has_no_result(long_run):
    point = summarise(dataclasses.replace(long_run, profiled=True))
    assert (point.grade.label, point.grade.reasons[0], point.is_valid) == ("void", PROFILED, False)
    assert point.throughput.value is None
    assert [found.value for found in point.latency.values()] == [None, None, None]


def test_an_unsteady_run_shows_its_figures_but_no_p99(scenario):
    run = scenario(seed=1, shape="normal", users=4, seconds=6.0, scale=lambda number: 1.0 + 0.3 * number).run()
    point = summarise(run)
    assert point.grade.label == "unsteady"
    assert point.throughput.value is not None
    assert point.latency["p50"].value is not None
    assert point.latency["p99"].value is None


def test_an_open_loop_beyond_capacity_is_unsteady(scenario):
    point = summarise(scenario(seed=1, shape="normal", rate_rps=130.0, seconds=6.0).run())
    assert point.grade.label == "unsteady"
    assert point.grade.reasons[0].startswith("overload: the backlog grew by")


def test_an_open_loop_that_turns_requests_away_is_overloaded(healthy_open_run):
    requests = healthy_open_run.requests.copy()
    requests.loc[requests.index[::20], "end_state"] = "rejected"
    requests.loc[requests.index[::20], "error"] = "queue_full"
    point = summarise(dataclasses.replace(healthy_open_run, requests=requests))
    assert "overload: " in " ".join(point.grade.reasons)
    assert set(point.errors) == {"queue_full"}
    assert point.error_ratio == pytest.approx(0.05, abs=0.01)


def test_an_open_loop_shorter_than_300_relaxation_times_has_no_p99(healthy_open_run):
    point = summarise(healthy_open_run)
    assert (point.grade.label, point.latency["p99"].value) == ("short", None)
    assert point.latency["p99"].needs_s > 40
    assert point.latency["p95"].value is not None


def test_a_run_without_any_answer_is_void_and_still_a_document(healthy_run):
    requests = healthy_run.requests.assign(end_state="connect_failed", error="refused")
    requests["received_ns"] = pd.array([pd.NA] * len(requests), dtype="Int64")
    point = summarise(dataclasses.replace(foreign(healthy_run), requests=requests))
    assert point.grade.label == "void"
    assert point.errors == {"refused": point.requests}
    json.dumps(point.to_json(), allow_nan=False)


def test_an_empty_run_is_void(healthy_run):
    point = summarise(
        dataclasses.replace(foreign(healthy_run), requests=healthy_run.requests.iloc[:0], generator_reports=[])
    )
    assert (point.grade.label, point.requests, point.throughput.value) == ("void", 0, None)


def test_rounds_are_listed_with_their_warm_up(long_run):
    rounds = summarise(long_run).rounds
    assert [one.index for one in rounds] == [0, 1, 2]
    assert all(one.throughput_rps == pytest.approx(200.0, rel=0.03) for one in rounds)
