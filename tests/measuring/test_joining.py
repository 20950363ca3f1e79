"""Do the client's samples and the server's ledger become one row a request, with absent shown as absent?"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.measuring.archive.format import BATCHES, REQUESTS
from perfkit.measuring.joining import batch_table, request_table
from perfkit.measuring.load.attempts import STRIDE
from perfkit.measuring.load.samples import SAMPLE_COLUMNS
from perfkit.records import EndState
from perfkit.serving.instrument.columns import BATCH_COLUMNS, REQUEST_COLUMNS

INTEGERS = [name for name, kind in REQUESTS.columns.items() if kind == "integer"]


def samples(*rows):
    """Rows of the client's file; what is not named is 0, absent."""
    return {name: np.array([row.get(name, 0) for row in rows], dtype=np.int64) for name in SAMPLE_COLUMNS}


def ledger(columns, *rows):
    """Rows of one of the server's tables, as it sends them."""
    names = ("number", *columns)
    return pa.table({name: pa.array([row.get(name, 0) for row in rows], pa.int64()) for name in names})


def requests_of(*rows):
    return ledger(REQUEST_COLUMNS, *rows)


def joined(client, server, batches=(), round_index=0):
    table = batch_table(ledger(BATCH_COLUMNS, *batches), round_index)
    return request_table(client, server, table, round_index).set_index("request_id", drop=False)


def plain(table, request_id, *names):
    """Some cells of one request, absent ones as None."""
    return tuple(None if pd.isna(value) else value for value in (table.loc[request_id, name] for name in names))


def test_a_request_seen_by_both_sides_is_one_row_with_its_batch():
    sent = {"request_id": 7, "payload": 3, "scheduled_ns": 10, "sent_ns": 11, "received_ns": 90, "status": 200}
    sent |= {"outcome": EndState.OK, "bytes_sent": 120, "bytes_received": 60}
    served = {"request_id": 7, "end_state": EndState.OK, "batch_id": 5, "accepted_ns": 20, "replied_ns": 80}
    batch = {"batch_id": 5, "model_thread": 42, "batch_sealed_ns": 30, "woken_ns": 70}
    table = joined(samples(sent), requests_of(served), [batch], round_index=2)
    assert len(table) == 1
    names = ("round", "payload", "end_state", "status", "error", "bytes_out", "bytes_in")
    assert plain(table, 7, *names) == (2, 3, "ok", 200, "", 120, 60)
    instants = ("scheduled_ns", "sent_ns", "accepted_ns", "batch_sealed_ns", "woken_ns", "replied_ns", "received_ns")
    assert plain(table, 7, *instants, "model_thread") == (10, 11, 20, 30, 70, 80, 90, 42)


def test_an_absent_instant_is_null_and_a_count_of_zero_is_zero():
    served = {"request_id": 1, "end_state": EndState.OK, "accepted_ns": 20}
    table = joined(
        samples({"request_id": 1, "scheduled_ns": 10, "outcome": EndState.OK, "status": 200}), requests_of(served)
    )
    assert plain(table, 1, "sent_ns", "parsed_ns", "batch_id", "preprocess_thread", "model_thread") == (None,) * 5
    assert plain(table, 1, "payload", "preprocess_cpu_ns", "bytes_in") == (0, 0, 0)


def test_a_request_that_only_the_client_saw_keeps_its_half():
    lost = {"request_id": 1, "scheduled_ns": 10, "sent_ns": 11, "outcome": EndState.TIMED_OUT}
    table = joined(samples(lost), requests_of({"request_id": 2, "end_state": EndState.CANCELLED, "accepted_ns": 5}))
    assert plain(table, 1, "end_state", "error", "status", "scheduled_ns", "accepted_ns", "received_ns") == (
        "timed_out",
        "timed_out",
        0,
        10,
        None,
        None,
    )


def test_a_request_that_was_sent_again_is_the_row_of_its_last_attempt_and_the_others_are_the_servers_alone():
    sent = {"request_id": 7 + STRIDE, "scheduled_ns": 10, "sent_ns": 50, "received_ns": 90, "status": 200}
    once = {"request_id": 8, "scheduled_ns": 10, "sent_ns": 11, "received_ns": 90, "status": 200}
    ends = {7: EndState.REJECTED, 7 + STRIDE: EndState.OK, 8: EndState.OK}
    served = [{"request_id": number, "end_state": end, "accepted_ns": 60} for number, end in ends.items()]
    rows = [row | {"outcome": EndState.OK} for row in (sent, once)]
    table = joined(samples(*rows), requests_of(*served))
    whole = table[table["scheduled_ns"].notna()]
    assert plain(whole, 7, "attempts", "sent_ns", "accepted_ns", "end_state") == (2, 50, 60, "ok")
    assert plain(whole, 8, "attempts", "sent_ns", "end_state") == (1, 11, "ok")
    alone = table[table["scheduled_ns"].isna()]
    assert plain(alone, 7, "attempts", "sent_ns", "end_state") == (1, None, "rejected")
    assert len(table) == 3


def test_a_request_that_only_the_server_saw_keeps_its_half_and_its_end():
    served = {"request_id": 2, "end_state": EndState.CANCELLED, "accepted_ns": 5, "replied_ns": 9}
    table = joined(samples({"request_id": 1, "outcome": EndState.OK, "status": 200}), requests_of(served))
    assert plain(table, 2, "end_state", "scheduled_ns", "payload", "accepted_ns", "replied_ns") == (
        "cancelled",
        None,
        None,
        5,
        9,
    )


def test_requests_of_others_without_an_id_are_kept_apart():
    others = [{"request_id": 0, "end_state": EndState.OK, "accepted_ns": at} for at in (5, 6)]
    table = joined(samples({"request_id": 1, "outcome": EndState.OK, "status": 200}), requests_of(*others))
    assert sorted(table["request_id"]) == [0, 0, 1]


def test_what_the_client_saw_decides_how_a_request_ended():
    gave_up = {"request_id": 1, "outcome": EndState.TIMED_OUT}
    table = joined(samples(gave_up), requests_of({"request_id": 1, "end_state": EndState.CANCELLED}))
    assert plain(table, 1, "end_state") == ("timed_out",)


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        (EndState.OK, 200, ""),
        (EndState.REJECTED, 503, "http_503"),
        (EndState.EXPIRED, 504, "http_504"),
        (EndState.REFUSED, 422, "http_422"),
        (EndState.FAILED, 500, "http_500"),
        (EndState.FAILED, 0, "malformed_reply"),
        (EndState.TIMED_OUT, 0, "timed_out"),
        (EndState.CONNECT_FAILED, 0, "connect_failed"),
        (EndState.DISCONNECTED, 0, "disconnected"),
    ],
)
def test_every_ending_has_its_name_and_its_error(outcome, status, error):
    client = samples({"request_id": 1, "outcome": outcome, "status": status})
    assert plain(joined(client, None), 1, "end_state", "error", "status") == (outcome.label, error, status)


def test_a_service_without_a_ledger_gives_the_clients_half_alone():
    client = samples({"request_id": 1, "scheduled_ns": 10, "received_ns": 20, "outcome": EndState.OK, "status": 200})
    table = request_table(client, None, batch_table(None, 0), 0)
    assert list(table.columns) == list(REQUESTS.columns)
    assert table["accepted_ns"].isna().all()
    assert batch_table(None, 0).columns.to_list() == list(BATCHES.columns)


def test_a_round_without_a_request_is_an_empty_table():
    table = request_table(samples(), requests_of(), batch_table(ledger(BATCH_COLUMNS), 0), 0)
    assert (len(table), list(table.columns)[: len(REQUESTS.columns)]) == (0, list(REQUESTS.columns))


def test_batches_keep_their_counts_and_know_their_round():
    batches = batch_table(ledger(BATCH_COLUMNS, {"batch_id": 4, "size": 3, "batch_sealed_ns": 9}), 1)
    assert batches.loc[0, ["batch_id", "round", "size", "units", "cpu_ns", "batch_sealed_ns"]].to_list() == [
        4,
        1,
        3,
        0,
        0,
        9,
    ]
    assert batches["woken_ns"].isna().all()


request_ids = st.sets(st.integers(1, 60), max_size=12)


@settings(max_examples=25)
@given(sent=request_ids, served=request_ids, batch_of=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_every_request_of_either_side_is_one_row_and_no_cell_is_invented(sent, served, batch_of):
    client = [
        {"request_id": number, "scheduled_ns": 1000 + number, "outcome": EndState.OK, "status": 200}
        for number in sorted(sent)
    ]
    server = [
        {"request_id": number, "end_state": EndState.OK, "accepted_ns": 2000 + number, "batch_id": batch_of[place]}
        for place, number in enumerate(sorted(served))
    ]
    batches = [{"batch_id": number, "woken_ns": 3000 + number} for number in (1, 2, 3)]
    table = joined(samples(*client), requests_of(*server), batches)
    assert sorted(table["request_id"]) == sorted(sent | served)
    assert {name: str(table[name].dtype) for name in INTEGERS} == dict.fromkeys(INTEGERS, "Int64")
    for place, number in enumerate(sorted(served)):
        batch = batch_of[place] or None
        woken = 3000 + batch if batch else None
        assert plain(table, number, "accepted_ns", "batch_id", "woken_ns") == (2000 + number, batch, woken)
    for number in sent | served:
        assert plain(table, number, "scheduled_ns") == (1000 + number if number in sent else None,)
        assert number in served or plain(table, number, "accepted_ns", "batch_id", "woken_ns") == (None,) * 3
