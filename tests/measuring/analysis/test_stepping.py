"""Is each step of a load that changes its level judged by itself, and the whole never as if it were steady?"""

import dataclasses

import numpy as np
import pytest

from perfkit.measuring.analysis.stepping import by_design, step_run, step_spans
from perfkit.measuring.analysis.steppoints import step_points
from perfkit.measuring.analysis.summary import summarise

RATES = (20.0, 40.0, 60.0)
STEP_S = 30.0


def with_steps(run, levels, profile):
    """The run with what its generator would have reported: equally long steps, (from, to) levels."""
    reports = []
    for report in run.generator_reports:
        edges = np.linspace(report["started_ns"], report["ended_ns"], len(levels) + 1).round().astype(int)
        steps = []
        for place, (low, high) in enumerate(levels):
            span = {"started_ns": int(edges[place]), "ended_ns": int(edges[place + 1])}
            steps.append({"name": f"step {place + 1}", "from_level": low, "to_level": high, **span})
        reports.append(report | {"steps": steps})
    return dataclasses.replace(run, generator_reports=reports, load=dict(run.load) | {"profile": profile})


@pytest.fixture(scope="module")
def stairs_run(scenario):
    """An open loop before one worker of 10 ms: three rates, thirty seconds each, in two rounds."""
    serve_open = scenario.play.__globals__["serve_open"]

    class Stairs(scenario):
        def play(self, rng, number):
            parts = []
            for place, rate in enumerate(RATES):
                at_s = place * STEP_S + np.cumsum(rng.exponential(1 / rate, int(rate * STEP_S * 2)))
                parts.append(at_s[at_s < (place + 1) * STEP_S])
            return serve_open(np.concatenate(parts).tolist(), 1, 1, self.service(rng, number))

    run = Stairs(seed=3, rounds=2, seconds=STEP_S * len(RATES), rate_rps=40.0, shape="normal").run()
    return with_steps(run, [(rate, rate) for rate in RATES], "staircase")


def test_the_whole_is_unsteady_by_design_and_has_no_p99(stairs_run):
    whole = summarise(stairs_run).to_json()
    assert whole["grade"] == "unsteady"
    assert whole["reasons"][0] == (
        "the load changed on purpose (staircase: 20, 40, 60 req/s); each step is judged apart"
    )
    assert whole["latency_s"]["p99"]["value"] is None
    assert [check["name"] for check in whole["checks"] if check["passed"] is False] == []


def test_each_step_is_a_point_at_its_level_over_all_rounds(stairs_run):
    steps = step_points(stairs_run, summarise(stairs_run).to_json())["steps"]
    assert [step["varied"] for step in steps] == [{"rate_rps": rate} for rate in RATES]
    assert [step["load"]["rate_rps"] for step in steps] == list(RATES)
    for step, rate in zip(steps, RATES, strict=True):
        assert step["throughput_rps"]["value"] == pytest.approx(rate, rel=0.1)
        assert step["grade"] in ("sound", "short")  # none is unsteady because of its neighbours
    medians = [step["latency_s"]["p50"]["value"] for step in steps]
    assert medians == sorted(medians)


def test_every_request_belongs_to_one_step(stairs_run):
    parts = [step_run(stairs_run, span).requests for span in step_spans(stairs_run)]
    ids = sorted(number for part in parts for number in part["request_id"])
    assert ids == sorted(stairs_run.requests["request_id"])


def test_a_step_on_the_way_to_another_level_keeps_its_counts_only(stairs_run):
    ramp = with_steps(stairs_run, [(0.0, 20.0), (40.0, 40.0), (60.0, 60.0)], "ramp")
    first, *others = step_points(ramp, summarise(ramp).to_json())["steps"]
    assert (first["grade"], first["reasons"]) == (
        "unsteady",
        ["the level went from 0 to 20, so that there was no steady state"],
    )
    assert first["requests"] == first["succeeded"] > 0
    assert "latency_s" not in first
    assert all("p99" in step["latency_s"] for step in others)


def test_a_step_that_never_settles_is_unsteady_and_its_neighbours_are_not(scenario, stairs_run):
    slower = stairs_run.requests.copy()
    span = step_spans(stairs_run)[1]
    for entry in span.rounds:
        inside = (slower["scheduled_ns"] >= entry["started_ns"]) & (slower["scheduled_ns"] < entry["ended_ns"])
        since = slower["scheduled_ns"][inside] - entry["started_ns"]
        slower.loc[inside, "received_ns"] = slower["received_ns"][inside] + since // 50
    drifting = dataclasses.replace(stairs_run, requests=slower)
    steps = step_points(drifting, summarise(drifting).to_json())["steps"]
    assert [step["grade"] == "unsteady" for step in steps] == [False, True, False]


def test_when_the_instruments_failed_no_step_has_a_result(stairs_run):
    failed = [report | {"scheduled": report["scheduled"] + 1} for report in stairs_run.generator_reports]
    void = dataclasses.replace(stairs_run, generator_reports=failed)
    found = step_points(void, summarise(void).to_json())
    assert found["knee"] is None
    assert {step["grade"] for step in found["steps"]} == {"void"}
    assert all("latency_s" not in step for step in found["steps"])


def test_a_load_that_was_stopped_early_has_steps_that_ended_with_it(stairs_run):
    reports = [report | {"ended_ns": report["steps"][1]["started_ns"] + 5} for report in stairs_run.generator_reports]
    last = step_spans(dataclasses.replace(stairs_run, generator_reports=reports))[2]
    assert all(entry["started_ns"] == entry["ended_ns"] for entry in last.rounds)


def test_a_load_at_one_level_has_no_steps(healthy_run):
    assert by_design(healthy_run) == ()
    assert step_points(healthy_run, summarise(healthy_run).to_json()) == {}


@pytest.fixture(scope="module")
def spike(scenario):
    """20 req/s before one worker of 10 ms, and more for ten seconds in the middle."""
    serve_open = scenario.play.__globals__["serve_open"]

    def run(high):
        class Spike(scenario):
            def play(self, rng, number):
                parts = []
                for start_s, rate in ((0.0, 20.0), (10.0, high), (20.0, 20.0)):
                    parts.append(start_s + np.arange(0, 10.0, 1 / rate))
                return serve_open(np.concatenate(parts).tolist(), 1, 1, self.service(rng, number))

        found = Spike(seed=4, rounds=1, seconds=30.0, rate_rps=80.0, shape="constant").run()
        found = dataclasses.replace(found, load=dict(found.load) | {"arrivals": "constant"})
        return with_steps(found, [(20.0, 20.0), (high, high), (20.0, 20.0)], "spike")

    return run


def test_a_spike_that_leaves_a_backlog_for_longer_than_the_run_has_no_recovery(spike):
    run = spike(200.0)
    assert step_points(run, summarise(run).to_json())["recovery_s"] is None


def test_the_recovery_is_the_time_that_the_backlog_takes_and_no_step_is_void_for_it(spike):
    run = spike(140.0)  # leaves 400 requests, of which 80 more are served a second than come
    found = step_points(run, summarise(run).to_json())
    assert found["recovery_s"] == pytest.approx(5.0, abs=1.1)  # to the next block of 20 requests
    assert [step["reasons"] for step in found["steps"] if step["grade"] == "void"] == []


def test_batches_that_a_step_shares_with_its_neighbours_are_not_held_against_it(stairs_run):
    alone = step_run(stairs_run, step_spans(stairs_run)[1])
    checks = {check.name: check for check in summarise(alone).checks}
    assert checks["utilisation law"].reason == "other loads shared the batches"
    assert checks["utilisation law"].passed is None
