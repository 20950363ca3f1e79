"""A late, slow, greedy or unfaithful generator voids a run."""

import dataclasses

import numpy as np
import pandas
import pytest
from scipy.stats import anderson

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.validity.generator import (
    anderson_darling,
    check_achieved,
    check_generator_cpu,
    check_lateness,
    check_schedule,
)


def with_reports(run, **changes):
    return dataclasses.replace(run, generator_reports=[report | changes for report in run.generator_reports])


def late(run, by_ns, share):
    requests = run.requests.copy()
    chosen = requests.index[:: round(1 / share)]
    requests.loc[chosen, "scheduled_ns"] -= by_ns
    return dataclasses.replace(run, requests=requests)


def test_a_healthy_generator_passes(healthy_run, healthy_open_run):
    for run in (healthy_run, healthy_open_run):
        measured = measure_windows(run)
        found = [check_lateness(run, measured), check_schedule(run), check_achieved(run), check_generator_cpu(run)]
        assert [check.passed for check in found] == [
            True,
            *([None, None] if run.is_closed_loop else [True, True]),
            True,
        ]


def test_lateness_may_be_a_tenth_of_the_median_latency(healthy_run):
    for by_ns, passed in ((10_000_000, True), (30_000_000, False)):
        run = late(healthy_run, by_ns, share=0.05)
        found = check_lateness(run, measure_windows(run))
        assert (found.passed, found.threshold) == (passed, pytest.approx(0.016, rel=0.1))


def test_lateness_of_fast_replies_may_be_two_milliseconds(scenario):
    run = scenario(seed=1, shape="normal", mean_s=0.001, users=2, seconds=1.0).run()
    for by_ns, passed in ((1_500_000, True), (2_500_000, False)):
        slow = late(run, by_ns, share=0.05)
        assert check_lateness(slow, measure_windows(slow)).passed is passed


def test_an_open_loop_is_judged_by_its_worst_round(healthy_open_run):
    reports = list(healthy_open_run.generator_reports)
    reports[1] = reports[1] | {"lateness_p99_s": 0.02}
    run = dataclasses.replace(healthy_open_run, generator_reports=reports)
    assert check_lateness(run, measure_windows(run)).passed is False


def test_a_poisson_schedule_with_equal_gaps_is_unfaithful(healthy_open_run):
    requests = healthy_open_run.requests.copy()
    requests["scheduled_ns"] = np.arange(len(requests)) * 10_000_000 + healthy_open_run.started_ns
    requests["scheduled_ns"] = requests["scheduled_ns"].astype("Int64")
    assert check_schedule(dataclasses.replace(healthy_open_run, requests=requests)).passed is False


def test_true_poisson_schedules_are_seldom_refused(scenario):
    refused = [not check_schedule(scenario(seed=seed, rate_rps=50.0, seconds=4.0).run()).passed for seed in range(25)]
    assert sum(refused) <= 1  # one in a hundred by design


def test_gaps_below_a_nanosecond_that_stand_as_none_do_not_make_a_fast_schedule_unfaithful(healthy_open_run):
    gaps_ns = np.random.default_rng(4).exponential(6_667.0, 400_000)  # 150,000 requests a second
    due_ns = np.round(np.cumsum(gaps_ns)).astype(np.int64) + healthy_open_run.started_ns
    assert (np.diff(due_ns) == 0).any()
    requests = pandas.DataFrame({"round": 0, "scheduled_ns": due_ns}).astype("Int64")
    assert check_schedule(dataclasses.replace(healthy_open_run, requests=requests)).passed is True


def test_the_statistic_is_that_of_scipy():
    gaps = np.random.default_rng(3).exponential(2.0, 200)
    plain = anderson(gaps, dist="expon", method="interpolate").statistic
    assert anderson_darling(gaps) == pytest.approx(plain * (1 + 0.6 / 200), rel=1e-6)


def test_a_generator_that_leaves_requests_out_voids_an_open_loop(healthy_open_run):
    for sent, passed in ((995, True), (985, False)):
        run = with_reports(healthy_open_run, scheduled=1000, sent=sent)
        assert (check_achieved(run).passed, check_achieved(run).figure) == (passed, sent / 1000)


def test_a_generator_may_use_a_tenth_of_the_machine_that_the_model_computes_on(healthy_run):
    for cpu_s, passed in ((0.5, True), (0.7, False)):
        run = with_reports(healthy_run, cpu_s=cpu_s, wall_s=3.0)
        assert (check_generator_cpu(run).passed, check_generator_cpu(run).figure) == (passed, pytest.approx(cpu_s / 6))


@pytest.mark.parametrize(("cpu_s", "passed"), [(1.4, True), (1.6, False)])
def test_beside_a_simulated_device_it_may_use_half_of_its_core(healthy_run, cpu_s, passed):
    settings = dict(healthy_run.settings) | {"model": "simulated:s001-a10"}
    run = dataclasses.replace(with_reports(healthy_run, cpu_s=cpu_s, wall_s=3.0), settings=settings, simulated=True)
    assert check_generator_cpu(run).passed is passed


def test_a_no_op_server_is_exempt(healthy_run):
    run = with_reports(healthy_run, cpu_s=2.9, wall_s=3.0)
    run = dataclasses.replace(run, settings=dict(healthy_run.settings) | {"model": "noop"})
    assert check_generator_cpu(run).passed is None


@pytest.mark.parametrize(("cpus", "passed"), [([0, 1, 2], True), ([2], False)])
def test_several_processes_may_use_half_of_each_core_that_they_have(healthy_run, cpus, passed):
    reports = [
        report | {"cpu_s": 0.4 * report["wall_s"] * 3, "cpus": cpus, "generators": [{}] * 3}
        for report in healthy_run.generator_reports
    ]
    run = dataclasses.replace(healthy_run, generator_reports=reports, simulated=True)
    assert check_generator_cpu(run).passed is passed
