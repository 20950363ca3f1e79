"""Stages tile a request's life, whatever is absent."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.measuring.analysis.ledger import fill_ratio, padding_ratio, stage_means, stage_table
from perfkit.records import BATCH_INSTANTS, INSTANTS, STAGE_ENDS, STAGES

BASE_NS = 9_000_000_000_000_000


def rows(*instants):
    """A requests table of rows given as {instant: ns after the base}."""
    table = pd.DataFrame([{f"{name}_ns": at.get(name) for name in INSTANTS} for at in instants])
    table = table.astype("Float64").astype("Int64") + BASE_NS
    return table.assign(
        batch_id=pd.array(range(len(instants)), dtype="Int64"), round=pd.array([0] * len(instants), dtype="Int64")
    )


def whole(step_ns=1000):
    return {name: place * step_ns for place, name in enumerate(INSTANTS)}


def test_a_whole_ledger_gives_every_stage_its_span():
    found = stage_table(rows(whole())).iloc[0]
    two_steps = {"preprocess_wait", "queue_wait", "d2h", "postprocess_wait"}  # a hand-over lies inside these
    assert {stage: round(found[stage] * 1e6) for stage in STAGES} == {
        stage: 2 if stage in two_steps else 1 for stage in STAGES
    }
    assert found["total"] == pytest.approx((len(INSTANTS) - 1) * 1e-6)


def test_an_absent_instant_leaves_its_span_to_the_next_present_stage():
    at = whole()
    del at["h2d_started"], at["h2d_ended"]
    found = stage_table(rows(at)).iloc[0]
    assert np.isnan(found["copy_wait"])
    assert np.isnan(found["h2d"])
    assert found["compute_wait"] == pytest.approx(3e-6)


def test_an_unfinished_request_keeps_the_stages_of_its_prefix():
    prefix = {name: at for name, at in whole().items() if INSTANTS.index(name) <= INSTANTS.index("parsed")}
    found = stage_table(rows(prefix)).iloc[0]
    assert list(found.dropna().index) == ["send", "accept", "parse"]


def test_without_the_servers_half_only_send_and_total_are_known():
    found = stage_table(rows({"scheduled": 0, "sent": 500, "received": 10_000})).iloc[0]
    assert found.dropna().to_dict() == pytest.approx({"send": 0.5e-6, "total": 10e-6})


def test_missing_batch_instants_come_from_the_batch():
    at = whole()
    bare = {name: value for name, value in at.items() if name not in BATCH_INSTANTS}
    batches = pd.DataFrame(
        [{f"{name}_ns": at[name] + BASE_NS for name in BATCH_INSTANTS} | {"batch_id": 0, "round": 0}]
    )
    batches = batches.astype("Int64")
    pd.testing.assert_frame_equal(stage_table(rows(bare), batches), stage_table(rows(at)))


def test_a_planted_delay_moves_its_stage_and_no_other():
    plain = stage_table(rows(whole())).iloc[0]
    for stage in STAGES:
        end = INSTANTS.index(STAGE_ENDS[stage])
        late = {name: at + (5_000_000 if INSTANTS.index(name) >= end else 0) for name, at in whole().items()}
        moved = (stage_table(rows(late)).iloc[0] - plain)[list(STAGES)]
        assert moved.round(9).to_dict() == {name: 0.005 if name == stage else 0.0 for name in STAGES}


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 10**9), min_size=len(INSTANTS), max_size=len(INSTANTS)),
    st.sets(st.sampled_from(INSTANTS[1:-1])),
)
def test_the_stages_of_a_finished_request_add_up_to_its_latency(steps, absent):
    instants = np.cumsum(steps)
    at = {name: int(value) for name, value in zip(INSTANTS, instants, strict=True) if name not in absent}
    if set(at) <= {"scheduled", "sent", "received"}:
        return  # without the server's half the span between send and reply has no stage
    found = stage_table(rows(at)).iloc[0]
    assert found[list(STAGES)].sum() == pytest.approx((instants[-1] - instants[0]) / 1e9, abs=1e-12)
    assert (found.dropna() >= 0).all()


def test_means_add_up_to_the_mean_latency_and_an_absent_stage_has_none():
    short = {name: at for name, at in whole().items() if name not in ("h2d_started", "h2d_ended")}
    table = stage_table(rows(whole(), whole(2000)))
    means = stage_means(table)
    assert sum(means.values()) == pytest.approx(table["total"].mean())
    assert stage_means(stage_table(rows(short)))["h2d"] is None


def test_padding_and_fill_of_batches():
    batches = pd.DataFrame({"size": [8, 4], "units": [30, 10], "padded_units": [40, 40]})
    assert padding_ratio(batches) == 0.5
    assert fill_ratio(batches, 8) == 0.75
    assert fill_ratio(batches, None) is None
    assert padding_ratio(batches.iloc[:0]) is None


def test_the_wait_before_inline_preprocess_is_shown_where_its_cure_lies():
    """The worker came free at 30 and kept its window open until 70; it was woken at 75."""
    row = {"request_id": 1, "round": 0, "batch_id": 1, "end_state": "ok", "scheduled_ns": 1, "sent_ns": 5}
    row |= {"accepted_ns": 8, "parsed_ns": 10, "preprocess_started_ns": 75, "preprocess_ended_ns": 80}
    row |= {"batch_joined_ns": 80, "batch_sealed_ns": 80, "replied_ns": 90, "received_ns": 95}
    inline = pd.DataFrame([row | {"worker_free_ns": 30, "due_ns": 70, "taken_ns": 75}])
    pooled = pd.DataFrame([row | {"worker_free_ns": 80, "due_ns": 80, "taken_ns": 80}])
    waits = ["preprocess_wait", "queue_wait", "batch_wait"]
    assert (stage_table(inline)[waits].iloc[0] * 1e9).round().tolist() == [5, 20, 40]
    assert (stage_table(pooled)[waits].iloc[0] * 1e9).round().tolist() == [65, 0, 0]
    assert stage_table(inline)["total"].equals(stage_table(pooled)["total"])
