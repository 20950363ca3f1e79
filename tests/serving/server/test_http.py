"""What does a client see: good answers, clear refusals, and what becomes of its mates? Real sockets, a real process."""

from __future__ import annotations

import json
import socket
import struct
import threading

import pytest

STAGES = ("preprocess", "collate", "predict", "split", "postprocess")
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def ask(wire, document, *headers, path="/predict"):
    wire.post(document, *headers, path=path)
    return wire.answer()


def counted(service, before, *states):
    """By how much the counters of these end states have grown."""
    after = service.stats()["counters"]
    return {state: after[state] - before[state] for state in states}


def test_one_input_gives_one_output_and_several_give_as_many_in_order(lab, dial):
    wire = dial(lab)
    one = ask(wire, {"input": "a", "id": "mine"})
    assert (one.status, one.headers["content-type"]) == (200, "application/json")
    assert one.json == {"id": "mine", "output": {"echo": "a", "batch": 1, "loads": 1}}
    many = ask(wire, {"inputs": ["a", None, [1.5, {"b": "ü"}]], "id": 7}).json
    assert (many["id"], [output["echo"] for output in many["outputs"]]) == (7, ["a", None, [1.5, {"b": "ü"}]])


def test_a_request_without_an_id_gets_one_of_its_own(lab, dial):
    wire = dial(lab)
    ids = [ask(wire, {"input": 1}).json["id"] for _ in range(3)]
    assert len(set(ids)) == 3


def test_the_stages_are_told_only_to_those_who_ask(lab, dial):
    wire = dial(lab)
    assert "server-timing" not in ask(wire, {"input": 1}).headers
    told = ask(wire, {"input": 1}, "Perfkit-Timing: 1").headers["server-timing"]
    assert [entry.split(";")[0] for entry in told.split(", ")] == [
        "parse",
        "preprocess_wait",
        "preprocess",
        "queue_wait",
        "batch_wait",
        "collate",
        "compute_wait",
        "compute",
        "wake_lag",
        "postprocess_wait",
        "postprocess",
    ]
    lab.configure({"http.server_timing": True})
    assert "server-timing" in ask(wire, {"input": 1}).headers


def test_health_stats_and_metrics_answer(lab, dial):
    wire = dial(lab)
    answers = []
    for path in ("/health/live", "/health/ready", "/stats", "/metrics"):
        wire.get(path)
        answers.append(wire.answer())
    assert [answer.status for answer in answers] == [200] * 4
    assert [answer.json for answer in answers[:2]] == [{"live": True}, {"ready": True}]
    assert answers[2].json["model"] == "lab_models:Probe"
    assert b'\nperfkit_requests_total{end_state="ok"} ' in answers[3].body
    assert b"\nperfkit_request_seconds_bucket{le=" in answers[3].body


def test_chunked_pipelined_old_and_careful_clients_are_served(lab, dial):
    wire = dial(lab)
    body = b'{"input": "x"}'
    wire.send(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    )
    assert wire.answer().status == 200
    sized = HEAD + b"Content-Length: %d\r\n" % len(body)
    wire.send(
        b"".join(HEAD + b"Content-Length: %d\r\n\r\n" % len(n) + n for n in (b'{"input":%d}' % n for n in range(20)))
    )
    assert [wire.answer().json["output"]["echo"] for _ in range(20)] == list(range(20))
    wire.send(sized + b"Expect: 100-continue\r\n\r\n")
    assert wire.answer().status == 100
    wire.send(body)
    assert wire.answer().status == 200
    old = dial(lab)
    old.send(sized.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + body)
    assert (old.answer().status, old.is_at_end()) == (200, True)
    wire.send(sized + b"Connection: close\r\n\r\n" + body)
    assert (wire.answer().headers["connection"], wire.is_at_end()) == ("close", True)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b'{"input": NaN}', "bad_json"),
        (b'{"input": Infinity}', "bad_json"),
        (b'{"input": 1e999}', "bad_json"),
        (b'{"input": "\xff"}', "bad_json"),
        (b'{"input": "\\ud800"}', "bad_json"),
        (b'{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad_json"),
        (b"[1]", "bad_shape"),
        (b'"text"', "bad_shape"),
        (b"null", "bad_shape"),
        (b"{}", "bad_shape"),
        (b'{"input": 1, "inputs": [1]}', "bad_shape"),
        (b'{"inputs": []}', "bad_shape"),
        (b'{"inputs": "text"}', "bad_shape"),
        (b'{"inputs": [' + b"1," * 1024 + b"1]}", "bad_shape"),
        (b'{"input": 1, "id": [[1]]}', "bad_id"),
        (b'{"input": 1, "id": true}', "bad_id"),
        (b'{"input": 1, "id": "' + b"x" * 1000 + b'"}', "bad_id"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_the_connection_goes_on(lab, dial, body, code):
    wire = dial(lab)
    wire.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert wire.answer().code == (400, code)
    assert ask(wire, {"input": 1}).status == 200


def test_other_refusals_have_their_own_status_and_say_what_is_allowed(lab, dial):
    wire = dial(lab)
    wire.send(b'POST /predict HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n{"input":1}')
    answers = [wire.answer()]
    wire.send(HEAD + b'Content-Encoding: gzip\r\nContent-Length: 11\r\n\r\n{"input":1}')
    answers.append(wire.answer())
    wire.get("/nowhere")
    answers.append(wire.answer())
    wire.get("/predict")
    answers.append(wire.answer())
    assert [answer.code for answer in answers] == [
        (415, "content_type"),
        (415, "content_encoding"),
        (404, "not_found"),
        (405, "method"),
    ]
    assert answers[0].json["error"]["message"] == "content-type is 'text/plain'; send application/json"
    assert "/health/live" in answers[2].json["error"]["message"]
    assert answers[3].headers["allow"] == "POST"


def test_an_answer_to_head_cannot_be_mistaken_for_the_next_one(lab, dial):
    wire = dial(lab)
    wire.get("/health/live", method="HEAD")
    assert (wire.answer().status, wire.is_at_end()) == (405, True)


@pytest.mark.parametrize(
    "header",
    ["Host: evil.example", "Host: evil.example:80", "Host: 127.0.0.1.evil.example", "Origin: http://evil.example"],
)
def test_a_web_page_from_elsewhere_cannot_use_a_server_without_token(lab, dial, header):
    for service in (lab, lab.control):
        wire = dial(service)
        host = [] if header.startswith("Host") else ["Host: localhost"]
        wire.send("\r\n".join(["GET /stats HTTP/1.1", header, *host, "", ""]).encode())
        assert wire.answer().code == (403, "host")


@pytest.mark.parametrize("header", ["Host: localhost:9", "Host: [::1]:9", "Host: 127.8.8.8", "X: none"])
def test_this_machine_s_own_names_are_served(lab, dial, header):
    wire = dial(lab)
    wire.send(f"GET /stats HTTP/1.1\r\n{header}\r\nOrigin: http://127.0.0.1:8888\r\n\r\n".encode())
    assert wire.answer().status == 200


def test_a_body_of_20_mb_is_refused_readably_and_the_server_stays(lab, dial):
    wire = dial(lab)
    failures = []

    def send_all():
        try:
            wire.send(HEAD + b"Content-Length: 20000000\r\n\r\n" + b"x" * 20_000_000)
        except OSError as error:
            failures.append(error)

    sender = threading.Thread(target=send_all)
    sender.start()
    answer = wire.answer()
    sender.join()
    assert (answer.code, failures) == ((413, "body_too_large"), [])
    assert answer.json["error"]["message"] == (
        "the body has 20000000 bytes or more; at most 8388608 are taken (setting http.max_body_bytes)"
    )
    assert ask(dial(lab), {"input": 1}).status == 200


def test_a_flood_of_headers_is_refused(lab, dial):
    wire = dial(lab)
    wire.send(HEAD + b"".join(b"X-%d: %b\r\n" % (number, b"y" * 100) for number in range(1000)) + b"\r\n")
    assert wire.answer().code == (431, "headers_too_large")


def test_a_request_that_comes_too_slowly_is_refused_and_cut_off(lab, dial):
    lab.configure({"http.request_timeout_s": 0.1})
    wire = dial(lab)
    wire.send(HEAD)
    assert wire.answer().code == (408, "slow_request")
    assert wire.is_at_end()


def test_a_queue_that_is_full_rejects_with_the_time_to_come_back(lab, dial, gate, eventually):
    lab.configure({"queue.depth": 2})
    before = lab.stats()["counters"]
    holder, waiting = dial(lab), [dial(lab), dial(lab)]
    holder.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 1 and lab.stats()["queued"] == 0)
    for wire in waiting:
        wire.post({"input": 1})
    eventually(lambda: lab.stats()["queued"] == 2)
    rejected = ask(dial(lab), {"input": 1})
    assert rejected.code == (503, "queue_full")
    assert 1 <= int(rejected.headers["retry-after"]) <= 60
    too_many = ask(dial(lab), {"inputs": [1, 2, 3]})
    assert too_many.code == (400, "bad_shape")
    gate.open()
    assert [wire.answer().status for wire in (holder, *waiting)] == [200, 200, 200]
    assert counted(lab, before, "ok", "rejected", "refused") == {"ok": 3, "rejected": 1, "refused": 1}


def test_a_request_that_waited_past_its_deadline_never_reaches_the_model(lab, dial, gate, eventually):
    lab.configure({"queue.deadline_s": 0.05, "batch.max_size": 4})
    before, batches = lab.stats()["counters"], lab.stats()["ledger"]["batches"]
    holder, late = dial(lab), dial(lab)
    holder.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 1 and lab.stats()["queued"] == 0)
    late.post({"input": 1})
    eventually(lambda: lab.stats()["queued"] == 1)
    threading.Event().wait(0.06)
    gate.open()
    answer = late.answer()
    assert answer.code == (504, "deadline")
    assert int(answer.headers["retry-after"]) >= 1
    assert holder.answer().code == (504, "deadline"), "what the model already had goes no further either"
    assert counted(lab, before, "ok", "expired") == {"ok": 0, "expired": 2}
    assert lab.stats()["ledger"]["batches"] == batches + 1


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("deed", "code"),
    [
        ("raise", (500, "model_error")),
        ("exit", (500, "model_error")),
        ("mumble", (500, "model_error")),
        ("refuse", (422, "input_refused")),
    ],
)
@pytest.mark.parametrize("placement", ["inline", "threads"])
def test_what_the_model_raises_in_any_stage_is_that_requests_answer(lab, dial, stage, deed, code, placement):
    if lab.settings.preprocess.placement != placement:
        lab.configure({"preprocess.placement": placement, "postprocess.placement": placement})
    wire = dial(lab)
    answer = ask(wire, {"input": {"at": stage, "do": deed}})
    assert answer.code == code
    if deed == "raise":
        place = "predict" if stage in ("collate", "split") else stage
        wanted = f"the model raised ValueError in {place}: told to fail in {stage}"
        assert answer.json["error"]["message"] == wanted
    assert ask(wire, {"input": 1}).status == 200


@pytest.mark.parametrize("deed", ["drop", "return an object"])
def test_outputs_that_are_missing_or_no_json_are_the_models_error(lab, dial, deed):
    wire = dial(lab)
    assert ask(wire, {"input": {"do": deed}}).code == (500, "model_error")
    assert ask(wire, {"input": 1}).status == 200


def batch_behind(gate, lab, dial, eventually, payloads):
    """Wires whose requests left together, in one batch, once the gate opened."""
    holder, wires = dial(lab), [dial(lab) for _ in payloads]
    holder.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 1 and lab.stats()["queued"] == 0)
    for count, (wire, payload) in enumerate(zip(wires, payloads, strict=True), 1):
        wire.post({"input": payload})
        eventually(lambda count=count: lab.stats()["queued"] == count)
    gate.open()
    assert holder.answer().status == 200
    return wires


@pytest.mark.parametrize("stage", ["preprocess", "collate", "predict", "split", "postprocess"])
def test_one_bad_request_in_a_batch_fails_alone(lab, dial, gate, eventually, stage):
    lab.configure({"batch.max_size": 8})
    before = lab.stats()["counters"]
    payloads = [{"n": number} for number in range(8)]
    payloads[5] = {"at": stage, "do": "raise"}
    answers = [wire.answer() for wire in batch_behind(gate, lab, dial, eventually, payloads)]
    assert [answer.status for answer in answers] == [200] * 5 + [500] + [200] * 2
    echoes = [answer.json["output"]["echo"] for answer in answers if answer.status == 200]
    assert echoes == [payload for payload in payloads if "n" in payload]
    assert counted(lab, before, "ok", "failed") == {"ok": 8, "failed": 1}


def test_a_batch_without_a_bad_request_stays_whole(lab, dial, gate, eventually):
    lab.configure({"batch.max_size": 8})
    wires = batch_behind(gate, lab, dial, eventually, [{"n": number} for number in range(8)])
    assert [wire.answer().json["output"]["batch"] for wire in wires] == [8] * 8


def test_a_model_that_returns_too_few_outputs_in_a_batch_gives_nobody_the_output_of_another(
    lab, dial, gate, eventually
):
    lab.configure({"batch.max_size": 4})
    payloads = [{"n": 0}, {"do": "drop"}, {"n": 2}, {"n": 3}]
    answers = [wire.answer() for wire in batch_behind(gate, lab, dial, eventually, payloads)]
    assert [answer.status for answer in answers] == [200, 500, 200, 200]
    assert [answer.json["output"]["echo"] for answer in answers if answer.status == 200] == [
        {"n": 0},
        {"n": 2},
        {"n": 3},
    ]


def test_one_refused_input_of_several_refuses_the_request(lab, dial):
    answer = ask(dial(lab), {"inputs": [1, {"at": "preprocess", "do": "refuse"}, 3]})
    assert answer.code == (422, "input_refused")


def leave(wire, *, abruptly):
    if abruptly:  # a reset instead of an orderly end
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


@pytest.mark.parametrize("abruptly", [True, False])
@pytest.mark.parametrize("place", ["queue", "model"])
def test_a_client_that_leaves_is_counted_and_its_mates_are_answered(lab, dial, gate, eventually, abruptly, place):
    lab.configure({"batch.max_size": 4})
    before = lab.stats()["counters"]
    holder, mates, leaver = dial(lab), [dial(lab), dial(lab)], dial(lab)
    holder.post({"input": gate.payload})
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 1 and lab.stats()["queued"] == 0)
    for count, wire in enumerate([mates[0], leaver, mates[1]], 1):
        wire.post({"input": {"n": count}})
        eventually(lambda count=count: lab.stats()["queued"] == count)
    if place == "queue":
        leave(leaver, abruptly=abruptly)
        eventually(lambda: lab.stats()["queued"] == 2)
    else:
        leave(holder, abruptly=abruptly)
        for _ in range(2):  # the loop that answers these has seen what came before them
            lab.stats()
    gate.open()
    stay = mates if place == "model" else [holder, *mates]
    if place == "model":
        assert leaver.answer().status == 200
    assert [wire.answer().status for wire in stay] == [200] * len(stay)
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 0)
    assert counted(lab, before, "ok", "cancelled", "failed") == {"ok": 3, "cancelled": 1, "failed": 0}
    assert lab.stats()["admitted"] == 0


def test_a_storm_of_clients_that_leave_at_any_moment_harms_nobody_else(lab, dial, eventually):
    lab.configure({"batch.max_size": 4, "preprocess.placement": "threads", "workers": 2})
    before = lab.stats()["counters"]
    good, stop = [], threading.Event()

    def ask_on():
        wire = dial(lab)
        while not stop.is_set():
            good.append(ask(wire, {"input": {"sleep_s": 0.001}}).status)

    asker = threading.Thread(target=ask_on)
    asker.start()
    for number in range(150):
        wire = dial(lab)
        wire.post({"input": {"sleep_s": 0.001}})
        threading.Event().wait((number % 7) * 0.0005)
        leave(wire, abruptly=number % 2 == 0)
    stop.set()
    asker.join()
    eventually(lambda: lab.stats()["gauge"]["in_flight"] == 0)
    assert set(good) == {200}
    grown = counted(lab, before, "accepted", "ok", "cancelled")
    assert grown["ok"] + grown["cancelled"] == grown["accepted"]
    assert (lab.stats()["admitted"], lab.stats()["queued"]) == (0, 0)


def test_hostile_bytes_leave_the_server_serving(lab, dial):
    good = HEAD + b"Content-Length: 11\r\n\r\n" + json.dumps({"input": 1}).encode()
    for position in range(0, len(good), 3):
        for byte in (b"\x00", b"\r\n", b"\xff" * 9, b"{" * 50):
            wire = dial(lab)
            wire.send(good[:position] + byte + good[position:])
            wire.close()
    assert ask(dial(lab), {"input": 1}).status == 200
    assert lab.stats()["gauge"]["in_flight"] == 0
