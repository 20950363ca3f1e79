"""Has each payload set of a mix figures of its own, and no more than the run itself may have?"""

import dataclasses

import pandas as pd
import pytest

from perfkit.measuring.analysis.mixture import set_figures
from perfkit.measuring.analysis.summary import summarise

SETS = [
    {"name": "short", "first": 0, "count": 2, "weight": 3.0, "lane": None},
    {"name": "long", "first": 2, "count": 1, "weight": 1.0, "lane": None},
]


@pytest.fixture
def mixed_run(healthy_open_run):
    """Every fourth request is of the long set and takes 50 ms more."""
    requests = healthy_open_run.requests.copy()
    is_long = pd.Series([place % 4 == 3 for place in range(len(requests))], index=requests.index)
    requests["payload"] = pd.array([2 if long else place % 2 for place, long in enumerate(is_long)], dtype="Int64")
    requests.loc[is_long, "received_ns"] = requests["received_ns"][is_long] + 50_000_000
    reports = [report | {"payloads": {"count": 3, "sets": SETS}} for report in healthy_open_run.generator_reports]
    return dataclasses.replace(healthy_open_run, requests=requests, generator_reports=reports)


def test_each_set_has_its_share_and_its_own_quantiles(mixed_run):
    whole = summarise(mixed_run).to_json() | {"valid": True}
    short, long = set_figures(mixed_run, whole)["payload_sets"]
    assert (short["name"], long["name"]) == ("short", "long")
    assert (short["asked_ratio"], long["asked_ratio"]) == (0.75, 0.25)
    assert short["had_ratio"] == pytest.approx(0.75, abs=0.01)
    medians = [one["latency_s"]["p50"]["value"] for one in (short, long)]
    assert medians[1] - medians[0] == pytest.approx(0.050, abs=0.01)


def test_a_set_is_known_no_better_than_the_run(mixed_run):
    whole = summarise(mixed_run).to_json()
    steady = whole | {"valid": True, "grade": "unsteady", "reasons": ["latency drifted"]}
    steady["latency_s"] = whole["latency_s"] | {"p99": whole["latency_s"]["p99"] | {"value": None}}
    for one in set_figures(mixed_run, steady)["payload_sets"]:
        assert (one["grade"], one["reasons"][0]) == ("unsteady", "latency drifted")
        assert one["latency_s"]["p99"]["value"] is None


def test_a_void_run_has_void_sets(mixed_run):
    whole = {"valid": False, "reasons": ["generator lateness: 20 ms"]}
    found = set_figures(mixed_run, whole)["payload_sets"]
    assert [(one["grade"], "latency_s" in one) for one in found] == [("void", False)] * 2


def test_a_single_file_has_no_sets(healthy_run):
    assert set_figures(healthy_run, {"valid": True, "reasons": []}) == {}
