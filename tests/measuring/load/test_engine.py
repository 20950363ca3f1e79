"""What does a phase of load record when the service behaves, and when it does not?"""

import asyncio
import random
import socket
import threading

import pytest

from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.schedule import arrival_offsets
from perfkit.records import EndState

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\nyes\r\n0\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nas long as it takes"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
CUT_SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf of it"


def assert_everything_is_accounted_for(phase):
    scheduled = phase.report["scheduled"]
    assert sum(phase.report["outcomes"].values()) == scheduled
    assert sorted(phase.samples["request_id"]) == list(range(1, scheduled + 1))
    assert phase.report["sent"] == sum(sent_ns > 0 for sent_ns in phase.samples["sent_ns"])
    assert sum(phase.report["errors"].values()) == scheduled - phase.report["outcomes"].get("ok", 0)


def only_outcome(phase):
    assert_everything_is_accounted_for(phase)
    (outcome,) = phase.report["outcomes"]
    assert set(phase.samples["outcome"]) == {EndState[outcome.upper()]}
    return outcome


def test_every_request_of_a_closed_loop_is_numbered_sent_answered_and_recorded(serve, always, run_phase):
    service = serve(always(OK))
    phase = run_phase(service.port, ClosedLoop(concurrency=4), 0.2)
    assert only_outcome(phase) == "ok"
    assert phase.report["scheduled"] == len(service.requests) > 10
    assert sorted(request.request_id for request in service.requests) == sorted(phase.samples["request_id"])
    assert set(phase.samples["status"]) == {200}
    assert set(phase.samples["bytes_received"]) == {len(OK)}
    assert service.connections == 4


def test_each_sample_names_the_payload_that_the_service_got(serve, always, run_phase):
    service = serve(always(OK))
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 0.1)
    bodies = [b'{"input": "one"}', b'{"input": "two 100 %"}', b'{"input": "trois"}']
    got = {request.request_id: request.body for request in service.requests}
    sent = zip(phase.samples["request_id"], phase.samples["payload"], strict=True)
    assert got == {request_id: bodies[payload] for request_id, payload in sent}
    assert set(phase.samples["payload"]) == {0, 1, 2}


def test_instants_of_a_request_are_in_order_and_users_chain_without_a_gap(serve, always, run_phase):
    phase = run_phase(serve(always(OK)).port, ClosedLoop(concurrency=1), 0.1)
    rows = list(zip(*(phase.samples[name] for name in ("scheduled_ns", "sent_ns", "received_ns")), strict=True))
    assert all(scheduled <= sent < received for scheduled, sent, received in rows)
    assert [row[0] for row in rows[1:]] == [row[2] for row in rows[:-1]]
    assert rows[0][0] == phase.report["started_ns"]
    assert rows[-1][0] < phase.report["ended_ns"]


@pytest.mark.parametrize("reply", [CHUNKED, INTERIM], ids=["chunked", "interim"])
def test_a_reply_in_pieces_counts_once_and_keeps_its_connection(serve, run_phase, reply):
    async def answer(_request, writer):
        for part in range(0, len(reply), 7):
            writer.write(reply[part : part + 7])
            await asyncio.sleep(0)

    service = serve(answer)
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 0.1)
    assert only_outcome(phase) == "ok"
    assert set(phase.samples["bytes_received"]) == {len(reply)}
    assert service.connections == 2


def test_a_reply_without_a_length_is_whole_when_the_service_closes(serve, always, run_phase):
    service = serve(always(UNTIL_CLOSED, goes_on=False))
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 0.1)
    assert only_outcome(phase) == "ok"
    assert service.connections == phase.report["scheduled"]


def test_a_reply_that_asks_for_closing_is_followed_by_a_new_connection(serve, always, run_phase):
    service = serve(always(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", goes_on=False))
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 0.1)
    assert only_outcome(phase) == "ok"
    assert service.connections == phase.report["scheduled"]


def test_without_keep_alive_each_request_has_a_connection_of_its_own(serve, always, run_phase):
    service = serve(always(OK))
    phase = run_phase(service.port, ClosedLoop(concurrency=2, keep_alive=False), 0.1)
    assert only_outcome(phase) == "ok"
    assert {request.header("connection") for request in service.requests} == {"close"}
    assert service.connections == phase.report["scheduled"]


def test_a_reply_that_nobody_asked_for_costs_its_connection_and_is_not_counted(serve, always, run_phase):
    service = serve(always(OK + OK))
    phase = run_phase(service.port, ClosedLoop(concurrency=1), 0.1)
    assert only_outcome(phase) == "ok"
    assert phase.report["scheduled"] == len(service.requests) == service.connections


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(429, "rejected"), (503, "rejected"), (504, "expired"), (413, "refused"), (422, "refused"), (500, "failed")],
)
def test_an_error_status_is_recorded_as_what_the_service_meant(serve, always, run_phase, status, outcome):
    service = serve(always(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % status))
    phase = run_phase(service.port, ClosedLoop(concurrency=1), 0.05)
    assert only_outcome(phase) == outcome
    assert phase.report["errors"] == {f"http_{status}": phase.report["scheduled"]}
    assert all(phase.samples["received_ns"])


def test_a_refused_connection_is_named_and_not_hammered(run_phase, dead_port):
    phase = run_phase(dead_port, ClosedLoop(concurrency=2), 0.3)
    assert only_outcome(phase) == "connect_failed"
    assert 2 < phase.report["scheduled"] <= 2 * 6  # pauses of 10, 20, 40, 80, 160 ms fill 0.3 s
    assert phase.report["faults"] == {"Connection refused": phase.report["scheduled"]}
    assert set(phase.samples["sent_ns"]) == set(phase.samples["received_ns"]) == {0}


def test_a_connection_that_does_not_come_about_is_given_up(run_phase):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]  # fill the backlog that nobody accepts from
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(address)
        load = ClosedLoop(concurrency=2, connect_timeout_s=0.05)
        phase = run_phase(address[1], load, 0.1)
        for client in waiting:
            client.close()
    assert only_outcome(phase) == "connect_failed"
    assert phase.report["faults"] == {"no connection in time": phase.report["scheduled"]}


def test_a_reply_that_does_not_come_times_out(serve, run_phase):
    async def answer(_request, _writer):
        await asyncio.sleep(60)

    phase = run_phase(serve(answer).port, ClosedLoop(concurrency=3, reply_timeout_s=0.05), 0.1)
    assert only_outcome(phase) == "timed_out"
    assert phase.report["scheduled"] >= 3
    assert all(phase.samples["sent_ns"])
    assert set(phase.samples["received_ns"]) == {0}


def test_a_reply_cut_short_is_a_disconnection(serve, always, run_phase):
    phase = run_phase(serve(always(CUT_SHORT, goes_on=False)).port, ClosedLoop(concurrency=2), 0.1)
    assert only_outcome(phase) == "disconnected"
    assert set(phase.samples["bytes_received"]) == {len(CUT_SHORT)}
    assert set(phase.samples["status"]) == {0}


def test_an_answer_that_is_not_http_is_a_malformed_reply(serve, always, run_phase):
    phase = run_phase(serve(always(b"SSH-2.0-OpenSSH_9.9\r\n")).port, ClosedLoop(concurrency=1), 0.05)
    assert only_outcome(phase) == "failed"
    assert phase.report["errors"] == {"malformed_reply": phase.report["scheduled"]}


def test_a_service_that_dies_in_the_middle_leaves_a_report(serve, run_phase):
    async def answer(request, writer):
        if request.request_id == 20:
            service.stop()
        writer.write(OK)

    service = serve(answer)
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 0.5)
    assert_everything_is_accounted_for(phase)
    assert phase.report["outcomes"]["ok"] >= 19
    assert phase.report["faults"]["Connection refused"] >= 2


def test_an_answer_before_the_whole_body_is_read_counts_and_closes(make_spec, run_phase, tmp_path):
    large = tmp_path / "large.jsonl"
    large.write_bytes(b'"' + b"x" * (16 << 20) + b'"\n')
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_over = threading.Event()
        server = threading.Thread(target=_refuse_one, args=(listener, refusal, is_over))
        server.start()
        load = OpenLoop(rate_rps=100.0, arrivals="constant", reply_timeout_s=5.0)
        phase = run_phase(listener.getsockname()[1], load, 0.015, payloads=large)  # one request, at 0.01 s
        is_over.set()
        server.join()
    assert phase.report["errors"] == {"http_413": 1}
    assert 0 < phase.samples["bytes_sent"][0] < 16 << 20


def _refuse_one(listener, refusal, is_over):
    connection, _ = listener.accept()
    connection.recv(1000)
    connection.sendall(refusal)
    is_over.wait(30)  # without reading on, which would let the client send the rest
    connection.close()


def test_every_ending_in_turn_is_still_accounted_for(serve, run_phase):
    kinds = ["ok", "ok", "ok", "busy", "cut", "garbage", "chunked", "silent", "gone"]
    random.Random(5).shuffle(kinds)

    async def answer(request, writer):
        kind = kinds[request.request_id % len(kinds)]
        if kind == "silent":
            await asyncio.sleep(60)
        replies = {
            "ok": OK,
            "busy": OK.replace(b"200", b"503"),
            "cut": CUT_SHORT,
            "garbage": b"\0\0",
            "chunked": CHUNKED,
        }
        writer.write(replies.get(kind, b""))
        return kind not in ("cut", "gone")

    service = serve(answer)
    phase = run_phase(service.port, ClosedLoop(concurrency=8, reply_timeout_s=0.05), 0.5)
    assert_everything_is_accounted_for(phase)
    opened = run_phase(service.port, OpenLoop(rate_rps=300, reply_timeout_s=0.05), 0.3)
    assert_everything_is_accounted_for(opened)
    every_kind = {"ok", "rejected", "disconnected", "failed", "timed_out"}
    assert set(phase.report["outcomes"]) == set(opened.report["outcomes"]) == every_kind


def test_an_open_loop_keeps_its_schedule_while_the_service_stalls(serve, run_phase):
    resumed = asyncio.Event()

    async def answer(request, writer):
        if request.request_id == 40:
            resumed.set()
        if request.request_id >= 10:  # from the tenth on nobody is answered until the fortieth has come
            await resumed.wait()
        writer.write(OK)

    load = OpenLoop(rate_rps=400, arrivals="poisson")
    service = serve(answer)
    phase = run_phase(service.port, load, 0.25, seed=3)
    assert only_outcome(phase) == "ok"
    by_id = sorted(zip(phase.samples["request_id"], phase.samples["scheduled_ns"], strict=True))
    offsets = [scheduled_ns - phase.report["started_ns"] for _, scheduled_ns in by_id]
    assert offsets == arrival_offsets(load, 0.25, 3).tolist()
    assert service.connections >= 31
    assert phase.report["held"] == 0


def test_requests_that_find_no_connection_free_wait_at_the_client(serve, run_phase):
    async def answer(_request, writer):
        await asyncio.sleep(0.02)
        writer.write(OK)

    service = serve(answer)
    phase = run_phase(service.port, OpenLoop(rate_rps=200, arrivals="constant", max_connections=2), 0.2)
    assert only_outcome(phase) == "ok"
    assert service.connections == 2
    assert phase.report["held"] > 10
    assert [request.request_id for request in service.requests] == list(range(1, phase.report["scheduled"] + 1))


def test_requests_that_wait_for_a_connection_too_long_time_out_unsent(serve, run_phase):
    async def answer(_request, _writer):
        await asyncio.sleep(60)

    load = OpenLoop(rate_rps=200, arrivals="constant", max_connections=1, reply_timeout_s=0.1)
    phase = run_phase(serve(answer).port, load, 0.1)
    assert only_outcome(phase) == "timed_out"
    assert 0 < phase.report["sent"] < phase.report["scheduled"] == 19


def test_a_refused_connection_does_not_stop_an_open_loop(run_phase, dead_port):
    phase = run_phase(dead_port, OpenLoop(rate_rps=500, arrivals="constant"), 0.1)
    assert only_outcome(phase) == "connect_failed"
    assert phase.report["scheduled"] == 49


def test_idle_connections_that_the_service_closes_are_replaced_silently(serve, run_phase):
    async def answer(_request, writer):
        writer.write(OK)
        return False  # keep-alive was promised, and the connection is closed all the same

    service = serve(answer)
    phase = run_phase(service.port, OpenLoop(rate_rps=20, arrivals="constant"), 0.3)
    assert only_outcome(phase) == "ok"
    assert service.connections == phase.report["scheduled"]


def test_thinking_users_start_spread_out_and_pause_between_requests(serve, always, run_phase):
    phase = run_phase(serve(always(OK)).port, ClosedLoop(concurrency=5, think_time_s=0.1), 0.5)
    assert only_outcome(phase) == "ok"
    first = sorted(phase.samples["scheduled_ns"])[:5]
    assert len(set(first)) == 5
    assert phase.report["scheduled"] <= 5 * 5


def test_replies_outstanding_at_the_drain_limit_are_cancelled(serve, run_phase):
    async def answer(_request, _writer):
        await asyncio.sleep(60)

    phase = run_phase(serve(answer).port, ClosedLoop(concurrency=2), 0.05, drain_s=0.05)
    assert only_outcome(phase) == "cancelled"
    load = OpenLoop(rate_rps=100, arrivals="constant", max_connections=1)
    opened = run_phase(serve(answer).port, load, 0.05, drain_s=0.05)
    assert only_outcome(opened) == "cancelled"
    assert opened.report["held"] == 3


def test_a_generator_told_to_stop_before_it_started_sends_nothing(serve, always, run_phase):
    service = serve(always(OK))
    phase = run_phase(service.port, ClosedLoop(concurrency=2), 60, prepare=lambda engine: engine.ask_to_stop())
    assert phase.report["scheduled"] == 0
    assert phase.report["was_stopped"] is True
    assert phase.report["lateness_p99_s"] is None


def test_a_generator_told_to_stop_schedules_nothing_more_and_awaits_replies(serve, run_phase):
    engines = []

    async def answer(request, writer):
        if request.request_id == 10:
            engines[0].ask_to_stop()
        writer.write(OK)

    phase = run_phase(serve(answer).port, OpenLoop(rate_rps=200), 60, prepare=engines.append)
    assert only_outcome(phase) == "ok"
    assert 10 <= phase.report["scheduled"] < 1000
    assert phase.report["ended_ns"] - phase.report["started_ns"] < 60e9
