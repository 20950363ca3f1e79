"""Dropped, swapped and wrong stamps void a run."""

import dataclasses

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.measuring.analysis.ledger import stage_table
from perfkit.measuring.analysis.measured import measure_windows
from perfkit.measuring.analysis.validity.stamps import (
    check_clock_order,
    check_middleware,
    check_stage_sum,
    check_stamps_present,
    served_rows,
)
from perfkit.records import INSTANTS

RECORDED = (
    "accepted",
    "parsed",
    "model_queued",
    "batch_sealed",
    "compute_started",
    "compute_ended",
    "woken",
    "replied",
)


def changed(run, instant, value, row=100):
    requests = run.requests.copy()
    requests.loc[requests.index[row], f"{instant}_ns"] = value
    return dataclasses.replace(run, requests=requests)


def test_a_healthy_ledger_passes(healthy_run):
    assert check_clock_order(healthy_run).passed is True
    assert check_stamps_present(healthy_run).passed is True
    assert check_stage_sum(stages(healthy_run)).passed is True


@pytest.mark.parametrize("instant", [*RECORDED, "scheduled", "sent", "received"])
def test_one_dropped_stamp_voids_the_run(healthy_run, instant):
    found = check_stamps_present(changed(healthy_run, instant, pd.NA))
    assert (found.passed, found.figure) == (False, 1)
    assert f"{instant} is missing in 1" in found.reason


def test_a_served_request_without_its_batch_voids_the_run(healthy_run):
    requests = healthy_run.requests.copy()
    requests.loc[requests.index[3], "batch_id"] = pd.NA
    assert check_stamps_present(dataclasses.replace(healthy_run, requests=requests)).passed is False


def test_a_stamp_that_no_request_has_is_dropped_only_when_every_path_has_it(healthy_run):
    without = healthy_run.requests.assign(h2d_started_ns=pd.array([pd.NA] * len(healthy_run.requests), dtype="Int64"))
    assert check_stamps_present(dataclasses.replace(healthy_run, requests=without)).passed is True
    never = healthy_run.requests.assign(replied_ns=pd.array([pd.NA] * len(healthy_run.requests), dtype="Int64"))
    assert check_stamps_present(dataclasses.replace(healthy_run, requests=never)).passed is False


@pytest.mark.parametrize(
    ("one", "other"), [("parsed", "accepted"), ("compute_ended", "compute_started"), ("received", "sent")]
)
def test_two_swapped_stamps_void_the_run(healthy_run, one, other):
    requests = healthy_run.requests.copy()
    names = [f"{one}_ns", f"{other}_ns"]
    requests.loc[requests.index[7], names] = requests.loc[requests.index[7], names[::-1]].to_numpy()
    found = check_clock_order(dataclasses.replace(healthy_run, requests=requests))
    assert (found.passed, found.figure) == (False, 1)


@given(st.sampled_from(INSTANTS[1:]), st.integers(1, 10**9))
def test_any_instant_before_its_predecessor_is_found(healthy_run, instant, early_ns):
    row = healthy_run.requests.iloc[100]
    earlier = [row[f"{name}_ns"] for name in INSTANTS[: INSTANTS.index(instant)] if row[f"{name}_ns"] is not pd.NA]
    assert check_clock_order(changed(healthy_run, instant, int(earlier[-1]) - early_ns)).passed is False


def test_instants_at_the_same_nanosecond_are_in_order(healthy_run):
    row = healthy_run.requests.iloc[100]
    assert check_clock_order(changed(healthy_run, "accepted", int(row["parsed_ns"]))).passed is True


def test_a_stage_counted_twice_breaks_the_sum(healthy_run):
    table = stages(healthy_run)
    found = check_stage_sum(table.assign(compute=2 * table["compute"]))
    assert found.passed is False
    assert found.figure == pytest.approx(table["compute"].mean() / table["total"].mean())


def stages(run):
    return stage_table(served_rows(measure_windows(run)))


def middleware(run, extra_ns):
    requests = run.requests.assign(middleware_ns=run.requests["replied_ns"] - run.requests["accepted_ns"] + extra_ns)
    return measure_windows(dataclasses.replace(run, requests=requests))


def test_the_total_is_held_against_a_latency_taken_around_the_service(healthy_run):
    assert check_middleware(middleware(healthy_run, 50_000)).passed is True
    assert check_middleware(middleware(healthy_run, 5_000_000)).passed is False
    assert check_middleware(measure_windows(healthy_run)).passed is None
