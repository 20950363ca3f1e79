"""Figures beyond the possible turn red."""

import dataclasses

import pandas as pd
import pytest

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.validity.bounds import (
    busy_ratios,
    check_busy,
    check_cores,
    check_throughput_bound,
    demand_s,
)


def cpu_series(run, cores):
    """A process that uses so many cores, half of them in the kernel, read every 100 ms."""
    rows = [
        {
            "time_ns": at,
            "source": "process",
            "name": name,
            "unit": "s",
            "value": (at - run.started_ns) / 1e9 * cores / 2,
        }
        for at in range(run.started_ns, run.ended_ns, 100_000_000)
        for name in ("user_cpu", "system_cpu")
    ]
    return dataclasses.replace(run, series=pd.DataFrame(rows))


def test_a_healthy_run_stays_below_its_bounds(healthy_run):
    measured = measure_windows(healthy_run)
    assert check_throughput_bound(healthy_run, measured).passed is True
    assert check_busy(healthy_run, measured).passed is True
    assert demand_s(healthy_run, measured) == pytest.approx(0.01, rel=0.03)
    assert busy_ratios(healthy_run, measured) == [pytest.approx(0.995, abs=0.01)]


def test_a_full_batch_shares_its_work_among_its_members(scenario):
    run = scenario(seed=1, shape="constant", users=32, batch=16, per_item_s=0.004).run()
    measured = measure_windows(run)
    assert demand_s(run, measured) == pytest.approx(0.07 / 16, rel=0.03)
    assert check_throughput_bound(run, measured).passed is True


def test_work_that_would_take_longer_than_the_users_wait_is_impossible(healthy_run):
    stretched = healthy_run.batches.assign(compute_started_ns=healthy_run.batches["compute_started_ns"] - 200_000_000)
    run = dataclasses.replace(healthy_run, batches=stretched)
    measured = measure_windows(run)
    assert check_throughput_bound(run, measured).passed is False
    assert check_busy(run, measured).passed is False


def test_more_cores_than_there_are_is_impossible(healthy_run):
    for cores, passed in ((1.5, True), (2.0, True), (2.2, False)):
        run = cpu_series(healthy_run, cores)
        found = check_cores(run, measure_windows(run))
        assert (found.passed, found.figure) == (passed, pytest.approx(cores))


def test_a_service_without_batches_or_series_is_not_judged(healthy_run):
    run = dataclasses.replace(healthy_run, batches=healthy_run.batches.iloc[:0])
    measured = measure_windows(run)
    assert [check(run, measured).passed for check in (check_throughput_bound, check_busy, check_cores)] == [None] * 3
