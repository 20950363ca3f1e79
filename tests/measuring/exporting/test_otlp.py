"""Do spans reach an OTLP receiver whole, once, and in the form that the protocol's own messages have?"""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from perfkit.errors import ConfigError, TargetFailed
from perfkit.measuring.analysis.ledger import stage_table
from perfkit.measuring.exporting.otlp import send_otlp


class Receiver(BaseHTTPRequestHandler):
    """Keeps what is posted and answers as it is told."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *words):
        pass


@pytest.fixture
def receiver():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.posts, server.status, server.answer = [], 200, b"{}"
    thread = threading.Thread(target=server.serve_forever, name="receiver")
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(receiver):
    return f"http://127.0.0.1:{receiver.server_port}"


def spans_of(receiver):
    return [
        span
        for _, _, document in receiver.posts
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def lasted_s(span):
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9


def test_each_request_is_a_trace_whose_stages_are_children_and_that_links_to_its_batch(tiny, receiver):
    assert send_otlp(tiny, address(receiver), 100) == (6, 6)
    ((path, kind, document),) = receiver.posts
    assert (path, kind) == ("/v1/traces", "application/json")
    facts = {one["key"]: one["value"] for one in document["resourceSpans"][0]["resource"]["attributes"]}
    assert (facts["perfkit.simulated"], facts["perfkit.run"]) == (
        {"boolValue": True},
        {"stringValue": "20250101-000000-abcd"},
    )
    roots = [span for span in spans_of(receiver) if span["name"] == "request"]
    batches = {span["spanId"]: span for span in spans_of(receiver) if span["name"] == "batch"}
    assert (len(roots), len(batches)) == (6, 2)
    assert sorted(root["status"]["code"] for root in roots) == [1, 1, 1, 1, 2, 2]
    assert {root["status"].get("message") for root in roots} == {None, "queue_full"}
    assert {link["spanId"] for root in roots for link in root.get("links", ())} == set(batches)
    for root in roots:
        children = [span for span in spans_of(receiver) if span.get("parentSpanId") == root["spanId"]]
        assert {child["traceId"] for child in children} == {root["traceId"]}
        assert sum(map(lasted_s, children)) == pytest.approx(lasted_s(root))


def test_a_run_is_placed_in_the_calendar_right_before_it_was_dated(tiny, receiver):
    send_otlp(tiny, address(receiver), 100)
    ends = [int(span["endTimeUnixNano"]) for span in spans_of(receiver)]
    created_ns = 1_735_689_600 * 10**9
    assert created_ns - 4 * 10**9 < min(ends) <= max(ends) <= created_ns


def test_the_protocols_own_messages_read_every_span_of_a_real_run(real, receiver):
    taken, total = send_otlp(real, f"{address(receiver)}/v1/traces", 300)
    assert (taken, total > 300, len(receiver.posts) > 1) == (300, True, True)
    for _, _, document in receiver.posts:
        message = json_format.ParseDict(document, ExportTraceServiceRequest())
        spans = [span for resource in message.resource_spans for part in resource.scope_spans for span in part.spans]
        raw = [span for part in document["resourceSpans"][0]["scopeSpans"] for span in part["spans"]]
        # Protobuf's own JSON reads ids as base64, OTLP writes them as hexadecimal.
        assert [base64.b64encode(span.trace_id).decode() for span in spans] == [one["traceId"] for one in raw]
        assert all(span.start_time_unix_nano < span.end_time_unix_nano for span in spans)
    ids = [(span["traceId"], span["spanId"]) for span in spans_of(receiver)]
    assert len(set(ids)) == len(ids)
    shown = real.table("requests").sort_values(["scheduled_ns", "accepted_ns"], kind="stable").head(300)
    queued = stage_table(shown, real.table("batches"))["queue_wait"].sum()
    assert sum(lasted_s(one) for one in spans_of(receiver) if one["name"] == "queue_wait") == pytest.approx(queued)


def test_sending_twice_makes_no_second_trace(tiny, receiver):
    send_otlp(tiny, address(receiver), 100)
    first = spans_of(receiver)
    receiver.posts.clear()
    send_otlp(tiny, address(receiver), 100)
    assert spans_of(receiver) == first


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (503, b"", "answered 503 Service Unavailable; is it an OTLP receiver"),
        (404, b"", "answered 404 Not Found"),
        (200, b'{"partialSuccess": {"rejectedSpans": "7", "errorMessage": "too old"}}', "rejected 7 spans: too old"),
    ],
)
def test_a_receiver_that_refuses_is_an_error_with_its_words(tiny, receiver, status, answer, words):
    receiver.status, receiver.answer = status, answer
    with pytest.raises(TargetFailed, match=words):
        send_otlp(tiny, address(receiver), 100)


@pytest.mark.parametrize("answer", [b"", b"thanks", b"[]", b'{"partialSuccess": null}'])
def test_a_receiver_that_answers_in_its_own_words_has_still_taken_them(tiny, receiver, answer):
    receiver.answer = answer
    assert send_otlp(tiny, address(receiver), 100) == (6, 6)


def test_an_absent_receiver_and_a_wrong_address_say_what_to_do(tiny):
    unused = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    unused.server_close()
    with pytest.raises(TargetFailed, match=r"does not take spans: .*; start the receiver"):
        send_otlp(tiny, address(unused), 100)
    for url in ("127.0.0.1:4318", "ftp://host", "http://", "file:///etc/passwd"):
        with pytest.raises(ConfigError, match="is no address of a receiver"):
            send_otlp(tiny, url, 100)
