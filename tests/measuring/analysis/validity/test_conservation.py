"""Each way of losing a request turns its test red; a healthy run is green."""

import dataclasses

import pandas as pd

from perfkit.measuring.analysis.validity.conservation import (
    check_client_counts,
    check_ledger_complete,
    check_replies_agree,
    check_server_counts,
)
from perfkit.records import INSTANTS

CHECKS = (check_client_counts, check_server_counts, check_replies_agree, check_ledger_complete)


def with_counter(run, **changes):
    """The run with some counters of the first round's end changed by a difference."""
    first = run.counters[0]
    after = first["after"] | {name: first["after"].get(name, 0) + by for name, by in changes.items()}
    return dataclasses.replace(run, counters=[first | {"after": after}, *run.counters[1:]])


def test_a_healthy_run_conserves_its_requests(healthy_run, healthy_open_run):
    for run in (healthy_run, healthy_open_run):
        assert [(check(run).passed, check(run).figure) for check in CHECKS] == [(True, 0)] * 4


def test_a_sample_that_the_client_lost_is_found(healthy_run):
    found = check_client_counts(dataclasses.replace(healthy_run, requests=healthy_run.requests.iloc[1:]))
    assert (found.passed, found.figure) == (False, 1)


def test_a_sample_that_was_written_twice_is_found(healthy_run):
    requests = pd.concat([healthy_run.requests, healthy_run.requests.iloc[:1]])
    assert check_client_counts(dataclasses.replace(healthy_run, requests=requests)).figure == 2


def test_a_request_without_an_end_is_found(healthy_run):
    requests = healthy_run.requests.assign(end_state="open")
    assert check_client_counts(dataclasses.replace(healthy_run, requests=requests)).passed is False


def test_a_request_that_the_server_forgot_is_found(healthy_run):
    assert check_server_counts(with_counter(healthy_run, accepted=1)).figure == 1
    assert check_server_counts(with_counter(healthy_run, failed=2)).figure == 2


def test_requests_still_in_flight_are_not_lost(healthy_run):
    run = with_counter(healthy_run, accepted=3)
    last = max(place for place, reading in enumerate(run.gauges) if reading["round"] == 0)
    gauges = [reading | ({"in_flight": 3} if place == last else {}) for place, reading in enumerate(run.gauges)]
    assert check_server_counts(dataclasses.replace(run, gauges=gauges)).passed is True


def test_a_reply_that_the_server_never_gave_is_found(healthy_run):
    assert check_replies_agree(with_counter(healthy_run, ok=-1)).figure == 1
    assert check_replies_agree(with_counter(healthy_run, ok=5)).passed is True  # the server has other clients too


def test_an_overwritten_or_unwritten_ledger_row_is_found(healthy_run):
    assert check_ledger_complete(with_counter(healthy_run, ledger_rows=-4, ledger_dropped=4)).figure == 4
    assert check_ledger_complete(with_counter(healthy_run, ledger_rows=-2)).figure == 2


def test_a_good_reply_without_a_ledger_row_is_found(healthy_run):
    requests = healthy_run.requests.copy()
    server = [f"{name}_ns" for name in INSTANTS if name not in ("scheduled", "sent", "received")]
    requests.loc[requests.index[5], server] = pd.NA
    assert check_ledger_complete(dataclasses.replace(healthy_run, requests=requests)).figure == 1


def test_a_foreign_service_is_not_judged_by_what_it_does_not_tell(healthy_run):
    requests = healthy_run.requests.copy()
    server = [f"{name}_ns" for name in INSTANTS if name not in ("scheduled", "sent", "received")]
    requests[server] = pd.NA
    foreign = dataclasses.replace(healthy_run, requests=requests, counters=[], gauges=[])
    assert [check(foreign).passed for check in CHECKS] == [True, None, None, None]
