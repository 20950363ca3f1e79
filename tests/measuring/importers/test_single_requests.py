"""Do files with a row per request read back as the requests that they were written from?"""

import csv
import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfkit.measuring.importers.formats import read_file
from perfkit.measuring.importers.requests import RequestLog

EPOCH_MS = 1_800_000_000_000
HEADING = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,"
    "sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 60_000), st.integers(0, 30_000), st.booleans(), st.sampled_from(["a, b", 'say "x"', "推理"])
    ),
    min_size=1,
    max_size=60,
)


def csv_text(rows, delimiter=","):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def jmeter_row(start_ms, elapsed_ms, failed, label, connect=0):
    code, success = ("500", "false") if failed else ("200", "true")
    fixed = ("text", success, "", 120, 60, 3, 3, "http://svc.invalid/", elapsed_ms // 2, 0, connect)
    return [EPOCH_MS + start_ms, elapsed_ms, label, code, "OK", "Group 1-1", *fixed]


def jmeter(requests, delimiter=",", heading=True):
    rows = [jmeter_row(*request) for request in requests]
    return csv_text([HEADING.split(",")] * heading + rows, delimiter)


def vegeta_lines(requests):
    def stamp(ms):
        return datetime.fromtimestamp((EPOCH_MS + ms) / 1e3, UTC).isoformat().replace("+00:00", "Z")

    rows = [
        {
            "attack": label,
            "seq": seq,
            "code": 500 if failed else 200,
            "timestamp": stamp(start),
            "latency": elapsed * 1_000_000,
            "bytes_out": 0,
            "bytes_in": 0,
            "error": "500" if failed else "",
        }
        for seq, (start, elapsed, failed, label) in enumerate(requests)
    ]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def vegeta_csv(requests):
    rest = ("GET", "http://svc.invalid/", "")
    rows = [
        [(EPOCH_MS + start) * 1_000_000, 500 if failed else 200, elapsed * 1_000_000, 0, 0, "", "", label, seq, *rest]
        for seq, (start, elapsed, failed, label) in enumerate(requests)
    ]
    return csv_text(rows)


def k6_lines(requests):
    def point(metric, end_ms, value, tags):
        stamp = datetime.fromtimestamp((EPOCH_MS + end_ms) / 1e3, UTC).isoformat()
        return {"metric": metric, "type": "Point", "data": {"time": stamp, "value": value, "tags": tags}}

    rows = []
    for start, elapsed, failed, label in requests:
        tags = {"status": "500" if failed else "200", "name": label, "expected_response": str(not failed).lower()}
        rows += [point("http_reqs", start, 1, tags), point("http_req_duration", start + elapsed, elapsed, tags)]
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def expected(requests):
    latency = np.array([elapsed / 1e3 for _, elapsed, _, _ in requests])
    ends = max(start + elapsed for start, elapsed, _, _ in requests)
    seconds = (ends - min(start for start, _, _, _ in requests)) / 1e3
    return {
        "requests": len(requests),
        "errors": sum(failed for _, _, failed, _ in requests),
        "mean": pytest.approx(latency.mean()),
        "max": latency.max(),
        "p99": pytest.approx(np.quantile(latency, 0.99)),
        "seconds": pytest.approx(seconds) if seconds else None,
    }


def found(imported):
    whole = imported.levels[0]
    return {
        "requests": whole.requests,
        "errors": whole.errors,
        "mean": whole.mean_s,
        "max": whole.max_s,
        "p99": whole.percentile(0.99),
        "seconds": whole.duration_s,
    }


def imported_from(content):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_file(path)


@pytest.mark.parametrize("write", [jmeter, vegeta_lines, vegeta_csv])
@settings(max_examples=30)
@given(requests=REQUESTS)
def test_every_request_comes_back(write, requests):
    imported = imported_from(write(requests))
    assert found(imported) == expected(requests)
    labels = {label for _, _, _, label in requests}
    assert {level.name for level in imported.levels[1:]} == (labels if len(labels) > 1 else set())
    assert (imported.rows.read, imported.rows.kept) == (len(requests), len(requests))
    assert (imported.timing.scope, imported.timing.basis) == ("request", "sent")


@settings(max_examples=30)
@given(requests=REQUESTS)
def test_a_k6_point_is_stamped_at_the_end_of_its_request(requests):
    imported = imported_from(k6_lines(requests))
    assert found(imported) == expected(requests)
    assert imported.rows.dropped == {"row of another metric": len(requests)}


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.encode("gb18030"),
    ],
)
def test_packing_and_encoding_change_nothing(encode):
    requests = [(10 * n, 12, False, "推理") for n in range(50)]
    imported = imported_from(encode(jmeter(requests)))
    assert found(imported) == expected(requests)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_jmeter_files_with_another_delimiter_and_without_a_heading_are_known(delimiter):
    requests = [(10 * n, 12 + n, n == 3, "predict") for n in range(50)]
    assert found(imported_from(jmeter(requests, delimiter, heading=False))) == expected(requests)


def test_an_old_headerless_row_is_not_read_by_its_time_to_the_first_byte():
    rows = [f"{EPOCH_MS + n}|6000|get|200|G 1-1|true|100|5|5|30|1|0|null\n" for n in range(5)]
    imported = imported_from("".join(rows))
    assert imported.levels[0].mean_s == 6.0
    assert imported.levels[0].concurrency == 5


def test_rows_of_transactions_repeat_their_samplers_and_are_dropped():
    sampler = jmeter_row(0, 50, False, "step")
    transaction = jmeter_row(0, 50, False, "whole")
    transaction[4], transaction[6] = "Number of samples in transaction : 1, number of failing samples : 0", ""
    imported = imported_from(csv_text([HEADING.split(","), sampler, transaction]))
    assert imported.levels[0].requests == 1
    assert imported.rows.dropped == {"row of a transaction controller (its samplers are counted)": 1}
    assert imported_from(csv_text([HEADING.split(","), transaction])).levels[0].requests == 1


def test_a_file_cut_in_the_middle_of_a_row_keeps_the_whole_rows():
    requests = [(10 * n, 12, False, "a") for n in range(20)]
    imported = imported_from(jmeter(requests)[:-50])
    assert (imported.rows.read, imported.rows.kept) == (20, 19)
    assert any("last line may be cut" in note for note in imported.notes)


def test_a_gzip_stream_that_ends_early_keeps_what_came_before():
    packed = gzip.compress(jmeter([(n, n % 97, False, str(n * n % 53)) for n in range(5000)]).encode())
    imported = imported_from(packed[: len(packed) // 2])
    assert 100 < imported.rows.kept < 5000
    assert any("gzip stream is damaged" in note for note in imported.notes)


def test_refused_requests_of_k6_count_as_failed_and_have_no_latency():
    lines = k6_lines([(0, 12, False, "a")]) + k6_lines([(5, 0, True, "a")]).replace('"status":"500"', '"status":"0"')
    whole = imported_from(lines).levels[0]
    assert (whole.requests, whole.errors, whole.min_s) == (2, 1, 0.012)


def test_a_clock_of_whole_seconds_tells_no_rate_of_a_short_run():
    heading = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,status\n"
    rows = [f"http_req_duration,{1_800_000_000 + n // 50},10.5,,,,true,,GET,/,200\n" for n in range(100)]
    whole = imported_from(heading + "".join(rows)).levels[0]
    assert (whole.requests, whole.throughput_rps, whole.mean_s) == (100, None, pytest.approx(0.0105))


def test_hey_rows_count_from_the_start_of_the_run():
    heading = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
    rows = [
        f"0.0110,{0.0004 if n < 2 else 0:.4f},0,0,0.0103,0,{500 if n == 7 else 200},{n / 100:.4f}\n" for n in range(20)
    ]
    whole = imported_from(heading + "".join(rows)).levels[0]
    assert (whole.requests, whole.errors, whole.new_connections) == (20, 1, 2)
    assert (whole.mean_s, whole.duration_s) == (pytest.approx(0.011), pytest.approx(0.201))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300), st.integers(1, 50))
def test_more_requests_than_the_limit_keep_exact_counts_and_bounded_samples(latencies, limit):
    log = RequestLog(limit=limit)
    for n, latency in enumerate(latencies):
        log.add(n, latency, False, "")
    (whole,) = log.levels()
    assert whole.requests == len(latencies)
    assert (whole.min_s, whole.max_s) == (min(latencies) / 1e9, max(latencies) / 1e9)
    assert whole.mean_s == pytest.approx(sum(latencies) / len(latencies) / 1e9)
    assert whole.min_s <= whole.percentiles_s[0.5] <= whole.max_s
