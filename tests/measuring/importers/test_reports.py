"""Are the reports of load generators read with their units, counts and gaps?"""

import json
from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.audit import audit

WRK = """Running 20s test @ http://svc.invalid/predict
  2 threads and 12 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    20.00ms  850.00us   1.20s    90.00%
    Req/Sec   300.00     12.00     0.35k    70.00%
  Latency Distribution
     50%   19.00ms
     75%   21.50ms
     90%   30.00ms
     99%    1.10s
  12000 requests in 20.02s, 1.20MB read
  Socket errors: connect 0, read 1, write 0, timeout 3
  Non-2xx or 3xx responses: 40
Requests/sec:    599.40
Transfer/sec:     61.00KB
"""
WRK2 = """Running 10s test @ http://svc.invalid/
  1 threads and 4 connections
  Thread calibration: mean lat.: 1.2ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     99%   +/- Stdev
    Latency     1.10ms  500.00us   70.00%    80.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.00ms
 99.000%    4.00ms
100.000%    9.50ms
  1000 requests in 10.00s, 100KB read
Requests/sec:    100.00
"""
HEY = """
Summary:
  Total:\t2.0000 secs
  Slowest:\t0.0300 secs
  Fastest:\t0.0001 secs
  Average:\t0.0100 secs
  Requests/sec:\t500.0000

Latency distribution:
  50% in 0.0095 secs
  99% in 0.0250 secs
  0% in 0.0000 secs

Status code distribution:
  [200]\t950 responses
  [503]\t50 responses

Error distribution:
  [4]\tGet "http://svc.invalid/": context deadline exceeded
"""
VEGETA = """Requests      [total, rate, throughput]         1000, 100.10, 60.00
Duration      [total, attack, wait]             15.8s, 9.99s, 5.81s
Latencies     [min, mean, 50, 90, 95, 99, max]  4.5ms, 1.2s, 590.5ms, 840ms, 10.001s, 10.002s, 10.009s
Bytes In      [total, mean]                     1000, 1.00
Success       [ratio]                           92.80%
Status Codes  [code:count]                      0:72  200:928
Error Set:
"""
STATS = (
    "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,"
    "Max Response Time,Average Content Size,Requests/s,Failures/s,50%,95%,99%,100%\n"
)
HISTORY = (
    "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,99%,Total Request Count,Total Failure Count,"
    "Total Median Response Time,Total Average Response Time\n"
)


def test_wrk_figures_take_their_own_units(reading):
    imported = reading(WRK)
    (run,) = imported.levels
    assert (imported.format, run.loop, run.has_think_time, run.concurrency) == ("wrk report", "closed", False, 12)
    assert (run.requests, run.errors, run.timeouts, run.duration_s) == (12_000, 44, 3, 20.02)
    assert (run.mean_s, run.max_s) == (0.02, 1.2)
    assert run.percentiles_s == {0.5: 0.019, 0.75: 0.0215, 0.9: 0.03, 0.99: 1.1}
    assert imported.timing.basis == "sent"


def test_several_wrk_runs_in_one_file_are_several_levels(reading):
    imported = reading(WRK + "\n" + WRK.replace("12 connections", "24 connections"))
    assert [(level.name, level.concurrency) for level in imported.levels] == [("run 1", 12), ("run 2", 24)]


def test_wrk2_counts_from_the_schedule_and_its_patched_column_is_no_maximum(reading):
    imported = reading(WRK2)
    (run,) = imported.levels
    assert (imported.format, imported.timing.basis, run.loop) == ("wrk2 report", "scheduled", "open")
    assert run.max_s == 0.0095
    assert run.percentiles_s == {0.5: 0.001, 0.99: 0.004}


def test_a_report_without_its_end_has_unknown_counts_not_zeros(reading):
    imported = reading(WRK[: WRK.index("     90%")])
    assert imported.rows.dropped == {"report without its end (no count of requests)": 1}
    (run,) = imported.levels
    assert (run.requests, run.errors, run.throughput_rps, run.mean_s) == (None, None, None, 0.02)


def test_hey_counts_requests_without_an_answer_and_skips_empty_percentiles(reading):
    (run,) = reading(HEY).levels
    assert (run.requests, run.errors, run.timeouts) == (1004, 54, 4)
    assert run.percentiles_s == {0.5: 0.0095, 0.99: 0.025}
    (cut,) = reading(HEY[: HEY.index("Status code")]).levels
    assert (cut.requests, cut.errors, cut.throughput_rps) == (None, None, 500.0)


def test_a_hey_run_without_an_answer_has_no_latency(reading):
    refused = HEY.replace("[200]\t950 responses", "").replace("[503]\t50 responses", "").replace("0.0100", "NaN")
    (run,) = reading(refused).levels
    assert (run.requests, run.errors, run.throughput_rps, run.mean_s, run.max_s) == (4, 4, 0.0, None, None)


def test_vegeta_text_reads_go_durations_and_sees_the_time_out(reading):
    imported = reading(VEGETA + "\n" + VEGETA)
    run = imported.levels[0]
    assert (run.requests, run.errors, run.offered_rps, run.duration_s) == (1000, 72, 100.1, 15.8)
    assert (run.min_s, run.mean_s) == (0.0045, 1.2)
    assert run.percentiles_s == {0.5: 0.5905, 0.9: 0.84, 0.95: 10.001, 0.99: 10.002}
    assert {finding.check for finding in audit(imported)} == {"load_not_delivered", "censored"}


def test_a_vegeta_json_report_is_in_nanoseconds(reading):
    report = {
        "latencies": {"mean": 2_000_000, "50th": 1_500_000, "99th": 9_000_000, "max": 12_000_000, "min": 500_000},
        "duration": 10_000_000_000,
        "wait": 2_000_000,
        "requests": 1000,
        "rate": 100.0,
        "throughput": 99.0,
        "success": 0.99,
        "status_codes": {"200": 990, "0": 10},
        "errors": [],
    }
    (run,) = reading(json.dumps(report)).levels
    assert (run.requests, run.errors, run.mean_s, run.percentiles_s) == (1000, 10, 0.002, {0.5: 0.0015, 0.99: 0.009})


def test_locust_stats_keep_rounding_apart_from_the_figures(reading):
    row = 'POST,"/a,b",500,5,2007.5,2019.4,2007.5,2057.1,8,4.94,0.0,2000,2000,2100,2100\n'
    imported = reading(
        STATS + row + row.replace('POST,"/a,b"', ",Aggregated") + ",Other,0,0,0,0,0,0,0,0,0" + ",N/A" * 4
    )
    assert [level.name for level in imported.levels] == ["POST /a,b", "Aggregated"]
    assert imported.levels[0].percentiles_s == {0.5: 2.0, 0.95: 2.0, 0.99: 2.1}
    assert imported.rows.dropped == {"row without a request (N/A means no data, not zero)": 1}
    assert {(finding.check, finding.row) for finding in audit(imported)} == {("rounded", 1), ("rounded", 2)}


def test_a_locust_run_without_a_request_has_no_data(reading):
    imported = reading(STATS + ",Aggregated,0,0,0,0.0,0,0,0,0.0,0.0,N/A,N/A,N/A,N/A\n")
    (level,) = imported.levels
    assert (level.requests, level.mean_s, level.throughput_rps, level.percentiles_s) == (0, None, None, {})


def test_locust_history_becomes_levels_by_the_difference_of_its_totals(reading):
    ticks = [
        (0, 0, 0, 0.0),
        (1, 2, 90, 20.0),
        (2, 2, 190, 20.0),
        (3, 2, 290, 20.0),
        (4, 8, 390, 35.0),
        (5, 8, 490, 44.0),
    ]
    rows = [f"{1_800_000_000 + s},{users},,Aggregated,1,0,9,9,{n},0,20,{mean}\n" for s, users, n, mean in ticks]
    named = f"{1_800_000_001},2,POST,/x,1,0,9,9,90,0,20,20\n"
    imported = reading(HISTORY + rows[0] + named + "".join(rows[1:]))
    assert imported.rows.dropped == {"row of one request name (Aggregated holds it)": 1}
    two, eight, whole = imported.levels
    assert (two.name, two.concurrency, two.requests, two.throughput_rps, two.mean_s) == ("2 users", 2, 200, 100.0, 0.02)
    assert (eight.requests, eight.mean_s) == (100, pytest.approx((490 * 44 - 390 * 35) / 100 / 1e3))
    assert (whole.name, whole.requests, whole.duration_s) == ("whole run", 490, 5)


def k6_summary(nested, **changes):
    metrics = {
        "http_reqs": {"count": 1000, "rate": 100.0},
        "http_req_failed": {"passes": 20, "fails": 980, "value": 0.02},
        "http_req_duration": {"avg": 9.8, "min": 0.1, "med": 10.0, "max": 30.0, "p(90)": 11.0, "p(99.9)": 29.0},
        "http_req_duration{expected_response:true}": {"avg": 10.0},
        "vus_max": {"value": 5, "min": 5, "max": 5},
        **changes,
    }
    if nested:
        metrics = {name: {"type": "x", "values": values} for name, values in metrics.items()}
    return json.dumps({"root_group": {}, "metrics": metrics})


@pytest.mark.parametrize("nested", [False, True])
def test_k6_passes_of_the_failed_rate_are_failures(reading, nested):
    (run,) = reading(k6_summary(nested)).levels
    assert (run.requests, run.errors, run.concurrency, run.throughput_rps) == (1000, 20, 5, 100.0)
    assert run.percentiles_s == {0.5: 0.01, 0.9: 0.011, 0.999: 0.029}
    assert run.error_mean_s == pytest.approx(0.0)


def test_k6_iterations_that_were_dropped_make_its_latency_that_of_a_smaller_load(reading):
    imported = reading(k6_summary(True, dropped_iterations={"count": 240, "rate": 24.0}))
    assert [finding.check for finding in audit(imported)] == ["load_not_delivered", "fast_errors"]


def test_k6_durations_of_zero_are_no_answers(reading):
    (run,) = reading(k6_summary(False, http_req_duration={"avg": 0, "min": 0, "med": 0, "max": 0})).levels
    assert (run.mean_s, run.percentiles_s, run.throughput_rps) == (None, {}, 0.0)


def test_a_k6_summary_that_is_cut_is_refused_with_the_position(reading):
    with pytest.raises(ConfigError, match=r"a k6 summary that is cut or broken \(.*line 1 column \d+"):
        reading(k6_summary(False)[:-40])


def test_a_heading_is_not_taken_for_the_line_below_it(reading):
    text = (Path(__file__).parent / "samples" / "wrk.txt").read_text()
    heading = "  Latency Distribution\n"
    moved = text.replace(heading, "").replace("    Latency  ", f"{heading}    Latency  ")
    assert reading(moved).levels[0].max_s == reading(text).levels[0].max_s == 1.2
