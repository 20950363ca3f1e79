"""Stolen time."""

import dataclasses

import pandas as pd
import pytest

from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.validity.host import check_steal


def stealing(run, ratios):
    rows = [
        {
            "time_ns": at,
            "source": f"core:{core}",
            "name": "steal",
            "unit": "s",
            "value": (at - run.started_ns) / 1e9 * ratio,
        }
        for at in range(run.started_ns, run.ended_ns, 100_000_000)
        for core, ratio in enumerate(ratios)
    ]
    return dataclasses.replace(run, series=pd.DataFrame(rows))


@pytest.mark.parametrize(("ratios", "passed"), [((0.02, 0.06), True), ((0.04, 0.10), False)])
def test_steal_counts_over_all_cores_up_to_a_twentieth(healthy_run, ratios, passed):
    run = stealing(healthy_run, ratios)
    found = check_steal(run, measure_windows(run))
    assert (found.passed, found.figure) == (passed, pytest.approx(sum(ratios) / 2))


def test_steal_that_was_not_recorded_is_not_zero(healthy_run):
    found = check_steal(healthy_run, measure_windows(healthy_run))
    assert (found.passed, found.figure, found.reason) == (None, None, "steal was not recorded")
