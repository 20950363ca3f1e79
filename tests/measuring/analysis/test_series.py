"""Growth of recorded counters."""

import dataclasses

import pandas as pd
import pytest

from perfkit.measuring.analysis.series import counter_rate, server_cores
from perfkit.measuring.analysis.warmup import find_windows


def counting(run, name, value_at, source="process"):
    rows = [
        {"time_ns": at, "source": source, "name": name, "unit": "s", "value": value_at((at - run.started_ns) / 1e9)}
        for at in range(run.started_ns, run.ended_ns, 250_000_000)
    ]
    return dataclasses.replace(
        run, series=pd.concat([run.series, pd.DataFrame(rows)]) if len(run.series) else pd.DataFrame(rows)
    )


def test_a_counter_is_read_inside_the_windows_only(healthy_run):
    """It grows by 1.5 a second while a round runs and by 9 a second in the pauses between."""
    run = counting(healthy_run, "user_cpu", lambda at: 1.5 * min(at % 8, 4) + 9 * max(0, at % 8 - 4) + at // 8 * 42)
    assert counter_rate(run, find_windows(run), "process", "user_cpu") == pytest.approx(1.5)


def test_a_counter_that_was_reset_is_not_counted_in_that_window(healthy_run):
    run = counting(healthy_run, "user_cpu", lambda at: at if at < 1.5 else 2 * (at - 1.5))
    assert counter_rate(run, find_windows(run), "process", "user_cpu") == pytest.approx(2.0)


def test_half_of_the_cpu_time_is_not_all_of_it(healthy_run):
    run = counting(healthy_run, "user_cpu", lambda at: at)
    assert server_cores(run, find_windows(run)) is None
    run = counting(run, "system_cpu", lambda at: at / 4)
    assert server_cores(run, find_windows(run)) == pytest.approx(1.25)


def test_the_cores_of_the_servers_children_are_the_servers(healthy_run):
    run = counting(counting(healthy_run, "user_cpu", lambda at: at), "system_cpu", lambda at: at / 4)
    run = counting(run, "cpu", lambda at: at / 2, source="children")
    assert server_cores(run, find_windows(run)) == pytest.approx(1.75)


def test_what_was_not_recorded_is_not_known(healthy_run):
    assert counter_rate(healthy_run, find_windows(healthy_run), "process", "user_cpu") is None
