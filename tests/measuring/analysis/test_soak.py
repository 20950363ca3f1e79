"""Is growth found in a soak, and noise not taken for it?"""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from perfkit.measuring.analysis.soak import soak_figures


def soaked(run, memory, queued=()):
    base = run.started_ns
    rows = [(base + at * 10**9, "process", "rss", "bytes", float(value)) for at, value in enumerate(memory)]
    series = pd.DataFrame(rows, columns=["time_ns", "source", "name", "unit", "value"])
    gauges = [
        {"time_ns": base + at * 10**9, "round": 0, "queued": value, "threads": 4, "in_flight": 0, "area_ns": 0}
        for at, value in enumerate(queued)
    ]
    load = dict(run.load) | {"profile": "soak"}
    return dataclasses.replace(run, series=series, gauges=gauges, load=load)


def test_memory_that_only_grows_is_found_and_noise_is_not(healthy_run):
    noise = np.random.default_rng(2).normal(0, 1e6, 60)
    steady = soak_figures(soaked(healthy_run, 300e6 + noise))["soak"]["memory_bytes"]
    leaking = soak_figures(soaked(healthy_run, 300e6 + noise + np.arange(60) * 2e6))["soak"]["memory_bytes"]
    assert (steady["is_growing"], leaking["is_growing"]) == (False, True)
    assert leaking["last"] - leaking["first"] == pytest.approx(90e6, rel=0.1)


def test_a_queue_that_piles_up_is_found(healthy_run):
    found = soak_figures(soaked(healthy_run, [], queued=range(40)))["soak"]
    assert found["queued_requests"]["is_growing"]
    assert not found["threads"]["is_growing"]


def test_what_was_not_recorded_is_absent(healthy_run):
    assert soak_figures(soaked(healthy_run, [1.0] * 19)) == {"soak": {}}


def test_other_profiles_have_no_soak(healthy_run):
    assert soak_figures(healthy_run) == {}
