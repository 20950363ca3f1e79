"""Are perf_analyzer's, Model Analyzer's and ghz's files read with their units and loads?"""

import json

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.audit import audit

CSV = (
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
    "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p99 latency\n"
    "1,50,100,400,0,50,19000,450,0,19500,21000,30000\n"
    "4,52,100,400,57000,50,19000,450,0,76000,78000,90000\n"
    "2,51.5,100,400,19000,50,19000,450,0,39000,41000,60000\n"
)
TEXT = """*** Measurement Settings ***
  Batch size: 1
  Measurement window: 1000 msec

Request concurrency: 2
  Client:
    Request count: 600
    Throughput: 100 infer/sec
    Avg latency: 19900 usec (standard deviation 302 usec)
    p50 latency: 19000 usec
    p99 latency: 25000 usec
  Server:
    Inference count: 1200
    Execution count: 300
Request concurrency: 4
Failed to obtain stable measurement within 4 measurement windows for concurrency 4.
Inferences/Second vs. Client Average Batch Latency
Concurrency: 2, throughput: 100 infer/sec, latency 19900 usec
"""


def test_perf_analyzer_rows_come_in_any_order_and_their_parts_add_up_to_the_mean(reading):
    imported = reading(CSV)
    assert [(level.row, level.concurrency) for level in imported.levels] == [(1, 1), (2, 4), (3, 2)]
    assert imported.levels[0].mean_s == 0.02
    assert imported.levels[1].percentiles_s == {0.5: 0.076, 0.9: 0.078, 0.99: 0.09}
    assert imported.timing.unit == "us"
    assert audit(imported) == []


def test_a_rate_that_was_not_reached_is_named(reading):
    imported = reading(CSV.replace("Concurrency", "Request Rate").replace("4,52", "80,52"))
    (finding,) = audit(imported)
    assert (finding.check, finding.row) == ("load_not_delivered", 2)


def test_a_load_without_a_stable_result_is_dropped_and_told(reading):
    imported = reading(TEXT)
    (level,) = imported.levels
    assert (level.concurrency, level.requests, level.throughput_rps, level.mean_s) == (2, 600, 100, 0.0199)
    assert imported.rows.dropped == {
        "load level without a result (the measurement did not become stable, or stopped)": 1
    }
    assert "concurrency 2: average batch on the server 4" in imported.notes
    with pytest.raises(ConfigError, match="perf_analyzer text without a single usable row"):
        reading(TEXT[: TEXT.index("  Client:")])


def export(mode, value, latencies):
    start = 1_800_000_000_000_000_000
    requests = [
        {"timestamp": start + n * 10**7, "request_inputs": {"IN": [1, 2]}, "response_timestamps": ends}
        for n, ends in enumerate([[start + n * 10**7 + part for part in parts] for n, parts in enumerate(latencies)])
    ]
    return {"experiment": {"mode": mode, "value": value}, "requests": requests, "window_boundaries": [start]}


def test_an_exported_request_lasts_until_its_last_response(reading):
    document = {
        "experiments": [
            export("concurrency", 2, [[5_000_000, 9_000_000], [], [7_000_000]]),
            export("request_rate", 5, [[10**6]]),
        ],
        "version": "x",
    }
    imported = reading(json.dumps(document))
    two, rate = imported.levels
    assert (two.name, two.loop, two.concurrency, two.requests, two.errors) == ("concurrency 2", "closed", 2, 3, 1)
    assert (two.max_s, two.min_s) == (0.009, 0.007)
    assert (rate.name, rate.loop, rate.offered_rps, rate.mean_s) == ("request rate 5", "open", 5, 0.001)
    assert imported.rows.kept == 4


def test_a_cut_export_keeps_its_whole_requests(reading):
    text = json.dumps({"experiments": [export("concurrency", 2, [[10**6]] * 40)]})
    imported = reading(text[: len(text) // 2])
    assert 10 <= imported.levels[0].requests < 30
    assert "the document is cut: whole requests before the cut are kept" in imported.notes


def test_model_analyzer_counts_inferences_and_milliseconds(reading):
    heading = "Model,Batch,Request Rate,Model Config Path,Instance Group,Throughput (infer/sec),p99 Latency (ms)\n"
    imported = reading(heading + 'm,2,32,config_5,"1:GPU,2:GPU",64.0,1.4\n')
    (level,) = imported.levels
    assert (level.name, level.throughput_rps, level.percentiles_s) == (
        "config_5, batch 2, rate 32",
        32.0,
        {0.99: 0.0014},
    )
    assert audit(imported) == []


def test_model_analyzers_gpu_columns_are_metrics(reading):
    heading = "Model,GPU UUID,Batch,Concurrency,Model Config Path,GPU Memory Usage (MB),GPU Utilization (%)\n"
    imported = reading(heading + "m,GPU-1,1,4,config_5,876.6,0.0\n")
    assert [(metric.name, metric.value) for metric in imported.metrics] == [
        ("GPU Memory Usage (MB)", 876.6),
        ("GPU Utilization (%)", 0.0),
    ]
    assert any("not proof of an idle GPU" in note for note in imported.notes)


GHZ = {
    "options": {"concurrency": 5},
    "count": 3,
    "total": 30_000_000,
    "average": 11_000_000,
    "fastest": 9_000_000,
    "slowest": 13_000_000,
    "rps": 100.0,
    "errorDistribution": {"rpc error": 1},
    "statusCodeDistribution": {"OK": 2, "Unavailable": 1},
    "latencyDistribution": [{"percentage": 50, "latency": 11_000_000}],
}


def test_ghz_calls_are_read_singly_where_they_are_kept(reading):
    calls = [
        {
            "timestamp": f"2026-01-02T03:04:05.{n}00000001Z",
            "latency": 10_000_000 * (n + 1),
            "error": "",
            "status": status,
        }
        for n, status in enumerate(["OK", "OK", "Unavailable"])
    ]
    imported = reading(json.dumps({**GHZ, "details": [*calls, {"latency": 1}]}))
    (level,) = imported.levels
    assert (level.requests, level.errors, level.concurrency, level.max_s) == (3, 1, 5, 0.03)
    assert imported.timing.scope == "request"
    assert imported.rows.dropped == {"call without a usable time stamp or latency": 1}


def test_ghz_without_calls_is_one_level(reading):
    (level,) = reading(json.dumps(GHZ)).levels
    assert (level.requests, level.errors, level.throughput_rps, level.mean_s) == (3, 1, 100.0, 0.011)
    assert (level.duration_s, level.percentiles_s) == (0.03, {0.5: 0.011})
