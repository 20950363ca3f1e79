"""Does a run's certificate hold everything that MEASUREMENT asks for, and does each planted violation turn it red?"""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from perfkit.measuring.analysis.certificate.instruments import FIGURES
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.precision import Goal
from perfkit.measuring.analysis.summary import summarise
from perfkit.measuring.analysis.validity import run_checks
from perfkit.records import INSTANTS

ENDINGS = ("_ratio", "_s", "_rps", "_bytes")
COUNTS = {
    *("wrong_requests", "lost_requests", "missing_replies", "missing_rows", "missing_stamps", "stale_rounds", "cores"),
    *("anderson_darling", "shared_cores", "replies", "steps", "class", "max_over_min", "n", "n_eff"),
    *("relaxation_times", "longest_round_requests", "different_payloads", "requests", "p99_over_from_send"),
    *("over_rate", "in_flight", "governor", "load_average"),
}
WANTED = {
    "one level",
    *FIGURES,
    *("no profiler", "settings kept", "nothing compiled", "answers"),
    *("overload", "warm-up", "steps", "drift", "windows: throughput", "windows: P50", "windows: P99"),
    *("P50 sample", "P95 sample", "P99 sample", "run length", "warm-up visible", "payloads", "precision"),
    *(
        "coordinated omission",
        "Little at the client",
        "generator ceiling",
        "pressure",
        "throttling",
        "neighbours",
        "machine",
    ),
}


def entries_of(run):
    return {one.name: one for one in summarise(run).certificate.entries}


def with_payloads(run, different):
    payloads = np.arange(len(run.requests)) % different
    return dataclasses.replace(run, requests=run.requests.assign(payload=pd.array(payloads, dtype="Int64")))


def test_every_run_carries_every_entry_with_units_an_origin_and_a_cost(healthy_run, healthy_open_run):
    for run in (healthy_run, healthy_open_run):
        found = entries_of(run)
        assert set(found) == WANTED
        assert all(one.origin and one.costs in ("void", "unsteady", "short", "nothing") for one in found.values())
        assert all(one.reason for one in found.values() if one.status in ("fail", "not applicable"))
        names = {name for one in found.values() for name in one.figures}
        assert all(name in COUNTS or name.endswith(ENDINGS) for name in names)


def test_every_self_test_names_its_figure(healthy_run):
    assert {check.name for check in run_checks(healthy_run, measure_windows(healthy_run))} == set(FIGURES)


def test_the_point_carries_the_certificate_and_its_grade(healthy_run):
    document = summarise(healthy_run).to_json()
    assert document["certificate"]["grade"] == document["grade"]
    failed = [one["reason"] for one in document["certificate"]["entries"] if one["status"] == "fail"]
    assert sorted(failed) == sorted(document["reasons"])
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_lost_batch_breaks_the_utilisation_law(healthy_run):
    assert entries_of(healthy_run)["utilisation law"].status == "pass"
    fewer = dataclasses.replace(healthy_run, batches=healthy_run.batches.iloc[::2])
    found = entries_of(fewer)["utilisation law"]
    assert (found.status, found.costs) == ("fail", "void")
    assert found.figures["residual_ratio"] > 0.5


def test_a_batch_of_another_size_than_it_says_breaks_the_utilisation_law(healthy_run):
    doubled = healthy_run.batches.assign(size=healthy_run.batches["size"] * 2)
    assert entries_of(dataclasses.replace(healthy_run, batches=doubled))["utilisation law"].status == "fail"


def test_work_that_brought_no_reply_leaves_the_utilisation_law_open(healthy_run):
    requests = healthy_run.requests.copy()
    requests.loc[requests.index[5], "end_state"] = "timed_out"
    found = entries_of(dataclasses.replace(healthy_run, requests=requests))["utilisation law"]
    assert (found.status, found.reason) == (
        "not applicable",
        "requests that failed may have cost the model time without a reply",
    )


@pytest.fixture
def on_cores(healthy_run):
    """The healthy run of a simulated service on some cores, its generator on others."""

    def place(server, generator, **changes):
        reports = [{**report, "cpus": generator} for report in healthy_run.generator_reports]
        placed = {"server_cpus": server, "generator_reports": reports, "simulated": True}
        return dataclasses.replace(healthy_run, **{**placed, **changes})

    return place


def test_a_generator_on_the_servers_core_voids_the_run(on_cores):
    found = summarise(on_cores([0], [0]))
    assert found.grade.label == "void"
    assert found.grade.reasons[0] == "generator core: server and generator ran on the same cores (0)"
    assert entries_of(on_cores([0], [1]))["generator core"].status == "pass"


def test_each_of_several_generators_must_keep_off_the_servers_core(on_cores):
    run = on_cores([0], [1])
    reports = [{**report, "generators": [{"cpus": [1]}, {"cpus": [0]}]} for report in run.generator_reports]
    assert entries_of(dataclasses.replace(run, generator_reports=reports))["generator core"].status == "fail"


def test_where_cores_must_be_shared_the_generator_may(on_cores):
    for run in (on_cores([0], [0], usable_cores=1), on_cores([0, 1], [0, 1], simulated=False), on_cores([], [0])):
        assert entries_of(run)["generator core"].status == "not applicable"


def test_one_payload_over_and_over_leaves_a_run_short(healthy_run):
    same = summarise(with_payloads(healthy_run, 1))
    assert same.grade.label == "short"
    assert "carried the same payload" in same.grade.reasons[-1]
    assert entries_of(with_payloads(healthy_run, 2))["payloads"].status == "pass"


def test_lines_that_do_not_differ_count_as_one_payload(healthy_run):
    reports = [{**report, "different_payloads": 1} for report in healthy_run.generator_reports]
    run = dataclasses.replace(with_payloads(healthy_run, 8), generator_reports=reports)
    assert entries_of(run)["payloads"].status == "fail"


def test_the_run_length_is_told_in_relaxation_times(healthy_open_run, scenario):
    short = entries_of(healthy_open_run)["run length"]
    assert (short.status, short.costs, short.threshold) == ("fail", "short", 300.0)
    assert short.figures["relaxation_times"] == pytest.approx(
        short.figures["measured_s"] / short.figures["relaxation_s"]
    )
    longer = entries_of(scenario(seed=3, shape="normal", rate_rps=20.0, seconds=20.0).run())["run length"]
    assert longer.figures["relaxation_times"] > 1_000
    assert (longer.status, longer.reason) == ("pass", "")


def test_noise_is_recorded_flagged_and_costs_nothing(healthy_run):
    times = np.arange(healthy_run.started_ns, healthy_run.ended_ns, 250_000_000)
    rows = {"time_ns": pd.array(times, dtype="Int64"), "source": "host", "name": "pressure_cpu_some", "unit": "s"}
    series = pd.DataFrame({**rows, "value": 0.3 * (times - times[0]) / 1e9})
    noisy = summarise(dataclasses.replace(healthy_run, series=series, environment={"governor": "powersave"}))
    found = {one.name: one for one in noisy.certificate.entries}
    assert found["pressure"].figures["cpu_some_ratio"] == pytest.approx(0.3, rel=0.05)
    assert found["pressure"].reason == "tasks waited for a core for 30.0 % of the time"
    assert found["machine"].figures["governor"] == "powersave"
    assert noisy.grade == summarise(healthy_run).grade


def test_what_a_waiting_generator_hides_is_told(scenario):
    run = scenario(seed=1, shape="normal", rate_rps=20.0, seconds=40.0).run()
    waited = run.requests.copy()
    waited["sent_ns"] = waited["received_ns"] - 1_000_000
    waited[[f"{name}_ns" for name in INSTANTS if name not in ("scheduled", "sent", "received")]] = pd.NA
    foreign = {"batches": run.batches.iloc[:0], "gauges": [], "counters": [], "settings": None}
    found = entries_of(dataclasses.replace(run, requests=waited, **foreign))["coordinated omission"]
    assert found.figures["p99_from_send_s"] == pytest.approx(0.001)
    assert found.figures["p99_over_from_send"] > 10


def test_a_run_without_a_result_tells_none_in_its_certificate(scenario):
    goal = Goal(quantile="p99", target_ratio=0.5, looks_s=(1.0,))
    run = dataclasses.replace(scenario(seed=1, shape="normal", users=4, workers=2, seconds=8.0).run(), goal=goal)
    assert entries_of(run)["precision"].status == "pass"
    assert entries_of(run)["coordinated omission"].figures["p99_from_send_s"] is not None
    void = entries_of(dataclasses.replace(run, profiled=True))
    for name in ("precision", "coordinated omission"):
        assert (void[name].status, dict(void[name].figures)) == ("not applicable", {})


def test_what_the_generator_could_send_is_estimated_from_its_cpu_time(healthy_run):
    figures = entries_of(healthy_run)["generator ceiling"].figures
    cpu_s, sent = (sum(report[name] for report in healthy_run.generator_reports) for name in ("cpu_s", "sent"))
    assert figures["ceiling_rps"] == pytest.approx(sent / cpu_s)
    assert figures["over_rate"] == pytest.approx(3 * 3.0 / cpu_s)  # three rounds of three seconds
