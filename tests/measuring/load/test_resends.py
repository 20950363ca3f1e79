"""Is a request that failed sent again, counted once, and found by its last attempt? Over real sockets."""

import asyncio
import dataclasses
from collections import Counter

import pytest

from perfkit.measuring.load.attempts import STRIDE, attempt_of, request_of
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.retries import BUDGET_BURST, Retries

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
QUICK = Retries(max_attempts=3, base_s=0.001, cap_s=0.002, budget_ratio=None)
LOADS = [ClosedLoop(concurrency=3, retries=QUICK), OpenLoop(rate_rps=200, max_connections=2, retries=QUICK)]


def from_attempt(first_good, bad=BUSY):
    """An answer that is good from an attempt on."""

    async def answer(request, writer):
        writer.write(OK if attempt_of(request.request_id) >= first_good else bad)

    return answer


def assert_each_request_ended_once(phase):
    scheduled = phase.report["scheduled"]
    assert sum(phase.report["outcomes"].values()) == scheduled > 0
    assert sorted(map(request_of, phase.samples["request_id"])) == list(range(1, scheduled + 1))


@pytest.mark.parametrize("load", LOADS, ids=["closed", "open"])
def test_a_request_that_succeeds_in_the_end_is_one_good_row_counted_from_its_schedule(serve, run_phase, load):
    service = serve(from_attempt(3))
    phase = run_phase(service.port, load, 0.2)
    assert_each_request_ended_once(phase)
    assert set(phase.report["outcomes"]) == {"ok"}
    assert set(map(attempt_of, phase.samples["request_id"])) == {3}
    assert phase.report["errors"] == {}
    assert phase.report["retries"]["errors"] == {"http_503": 2 * phase.report["scheduled"]}
    tries = Counter(request_of(request.request_id) for request in service.requests)
    assert set(tries.values()) == {3}
    times = zip(*(phase.samples[name] for name in ("scheduled_ns", "sent_ns", "received_ns")), strict=True)
    assert all(scheduled < sent < received for scheduled, sent, received in times)


@pytest.mark.parametrize("load", LOADS, ids=["closed", "open"])
def test_a_request_that_fails_every_time_ends_with_its_last_error(serve, run_phase, load):
    phase = run_phase(serve(from_attempt(99)).port, load, 0.1)
    assert_each_request_ended_once(phase)
    assert phase.report["errors"] == {"http_503": phase.report["scheduled"]}
    assert phase.report["retries"]["retried"] == 2 * phase.report["scheduled"]


def test_a_request_without_a_reply_is_sent_again_over_a_new_connection(serve, run_phase):
    async def answer(request, writer):
        if attempt_of(request.request_id) == 1:
            return False
        writer.write(OK)
        return True

    phase = run_phase(serve(answer).port, ClosedLoop(concurrency=2, retries=QUICK), 0.1)
    assert_each_request_ended_once(phase)
    assert set(phase.report["outcomes"]) == {"ok"}
    assert set(phase.report["retries"]["errors"]) == {"disconnected"}


def test_the_budget_bounds_what_a_failing_service_is_asked(serve, run_phase):
    retries = Retries(max_attempts=9, base_s=0.0, cap_s=0.001, budget_ratio=0.2)
    service = serve(from_attempt(99))
    phase = run_phase(service.port, OpenLoop(rate_rps=500, arrivals="constant", retries=retries), 0.4)
    assert_each_request_ended_once(phase)
    scheduled, retried = phase.report["scheduled"], phase.report["retries"]["retried"]
    assert len(service.requests) == scheduled + retried
    assert 0.2 * scheduled - 1 <= retried <= 0.2 * scheduled + BUDGET_BURST
    assert phase.report["retries"]["over_budget"] > 0


def test_a_retry_after_is_waited_for(serve, run_phase):
    busy = b"HTTP/1.1 429 Later\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
    phase = run_phase(serve(from_attempt(2, busy)).port, ClosedLoop(retries=QUICK), 0.05)
    assert phase.report["outcomes"] == {"ok": 1}
    assert phase.samples["received_ns"][0] - phase.samples["scheduled_ns"][0] > 1e9


def test_a_retry_says_what_is_left_of_the_deadline_and_none_comes_after_it(serve, run_phase):
    service = serve(from_attempt(99))
    retries = Retries(max_attempts=50, base_s=0.05, cap_s=0.05, budget_ratio=None)
    phase = run_phase(service.port, ClosedLoop(deadline_s=0.5, retries=retries), 0.05)
    assert_each_request_ended_once(phase)
    left = [float(request.header("perfkit-deadline")) for request in service.requests]
    assert left == sorted(left, reverse=True)
    assert len(left) > 2
    assert 0.0 < left[-1] < left[0] <= 0.5


def test_the_throttle_keeps_requests_from_a_service_that_accepts_none(serve, run_phase):
    service = serve(from_attempt(99))
    load = OpenLoop(rate_rps=500, arrivals="constant", retries=Retries(throttle_s=5.0))
    phase = run_phase(service.port, load, 0.4)
    assert_each_request_ended_once(phase)
    held_back = phase.report["retries"]["held_back"]
    assert held_back > phase.report["scheduled"] // 2
    assert len(service.requests) == phase.report["scheduled"] - held_back == phase.report["sent"]
    assert phase.report["errors"] == {"http_503": phase.report["sent"], "rejected": held_back}


def test_a_user_whose_requests_are_held_back_pauses_longer_each_time(serve, run_phase):
    service = serve(from_attempt(99))
    phase = run_phase(service.port, ClosedLoop(concurrency=2, retries=Retries(throttle_s=5.0)), 0.4)
    assert_each_request_ended_once(phase)
    held_back = phase.report["retries"]["held_back"]
    assert len(service.requests) == phase.report["sent"] == phase.report["scheduled"] - held_back
    assert held_back > 0
    assert phase.report["scheduled"] < 400  # without a pause it would be thousands


def test_stopping_ends_what_waits_to_be_sent_again(serve, run_phase):
    engines = []

    async def answer(request, writer):
        if request.request_id == 5:
            engines[0].ask_to_stop()
        writer.write(BUSY)

    retries = Retries(max_attempts=9, base_s=50.0, cap_s=50.0, budget_ratio=None)
    phase = run_phase(serve(answer).port, OpenLoop(rate_rps=200, retries=retries), 60, prepare=engines.append)
    assert_each_request_ended_once(phase)
    assert phase.report["outcomes"]["cancelled"] >= 4
    assert min(map(attempt_of, phase.samples["request_id"])) >= 1


@pytest.mark.parametrize("load", LOADS, ids=["closed", "open"])
def test_a_request_that_timed_out_is_sent_again_however_old_it_is(serve, run_phase, load):
    async def answer(request, writer):
        if attempt_of(request.request_id) < 3:
            await asyncio.sleep(60)
        writer.write(OK)

    retries = dataclasses.replace(QUICK, base_s=0.1, cap_s=0.1)
    load = dataclasses.replace(load, retries=retries, reply_timeout_s=0.1)
    if isinstance(load, OpenLoop):
        load = dataclasses.replace(load, rate_rps=50, max_connections=1024)
    phase = run_phase(serve(answer).port, load, 0.1)
    assert_each_request_ended_once(phase)
    assert set(phase.report["outcomes"]) == {"ok"}
    assert phase.report["retries"]["errors"] == {"timed_out": 2 * phase.report["scheduled"]}


def test_lane_batch_and_deadline_travel_as_headers_and_are_absent_by_default(serve, always, run_phase):
    names = ("perfkit-lane", "perfkit-batch", "perfkit-deadline")
    service = serve(always(OK))
    run_phase(service.port, ClosedLoop(), 0.05)
    assert {request.header(name) for request in service.requests for name in names} == {None}
    service = serve(always(OK))
    run_phase(service.port, ClosedLoop(lane="offline", batch="off", deadline_s=2.0), 0.05)
    assert {(request.header(names[0]), request.header(names[1])) for request in service.requests} == {
        ("offline", "off")
    }
    assert all(1.0 < float(request.header(names[2])) <= 2.0 for request in service.requests)


def test_a_request_older_than_its_deadline_is_not_sent(serve, run_phase):
    async def answer(_request, writer):
        await asyncio.sleep(0.05)
        writer.write(OK)

    service = serve(answer)
    load = OpenLoop(rate_rps=200, arrivals="constant", max_connections=1, deadline_s=0.1)
    phase = run_phase(service.port, load, 0.2)
    assert_each_request_ended_once(phase)
    assert set(phase.report["outcomes"]) == {"ok", "expired"}
    assert phase.report["sent"] == len(service.requests) == phase.report["outcomes"]["ok"]


def test_numbers_on_the_wire_count_the_attempts(serve, run_phase):
    service = serve(from_attempt(2))
    run_phase(service.port, OpenLoop(rate_rps=50, arrivals="constant", retries=QUICK), 0.05)
    assert sorted(request.request_id for request in service.requests) == [1, 2, 1 + STRIDE, 2 + STRIDE]
