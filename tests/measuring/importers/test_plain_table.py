"""Is a table that an article prints read as it is meant?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.audit import audit

CHINESE = """并发用户,平均响应时间,P99响应时间,实测QPS,显卡占用
1,150ms,155ms,6.7,约10%
5,190ms,240ms,25,约40%
10,350ms,680ms,27,约60%
20,1200ms,3800ms,25,约70%
40,2500ms,9000ms,22,约50%
"""


def figures(imported):
    return [
        (level.concurrency, level.throughput_rps, level.mean_s, level.percentile(0.99)) for level in imported.levels
    ]


def test_a_chinese_table_with_units_in_its_cells_is_understood(reading):
    imported = reading(CHINESE)
    assert (imported.format, imported.rows.read, imported.rows.kept) == ("results table", 5, 5)
    assert figures(imported)[3] == (20, 25, 1.2, 3.8)


def test_the_two_rows_that_break_littles_law_are_flagged_and_no_other(reading):
    found = audit(reading(CHINESE))
    assert [(finding.check, finding.row) for finding in found] == [("little", 4), ("little", 5)]
    assert found[0].figures == {"in_flight": 30.0, "concurrency": 20.0, "throughput_rps": 25.0, "mean_s": 1.2}


@pytest.mark.parametrize(
    "text",
    [
        "Concurrency,Mean (ms),P99 (ms),Throughput\n2,200,300,10\n4,210,320,19\n",
        "clients;avg latency [s];99th percentile [s];req/s\n2;0,2;0,3;10\n4;0,21;0,32;19\n",
        "users\tmean_us\tp99_us\trps\n2\t200000\t300000\t10\n4\t210000\t320000\t19\n",
        "| threads | p99 | average response time | QPS |\n|--:|---|---|---|\n| 2 | 300 ms | 200 ms | 10 |\n"
        "| 4 | 320 ms | 210 ms | 19 |\n",
        "VUs   mean     p99      TPS\n2     0.2 s    0.3 s    10\n4     0.21 s   0.32 s   19\n",
        "ConcurrentUsers,AvgLatencyMs,P99LatencyMs,ThroughputRps\n2,200,300,10\n4,210,320,19\n",
        "conc,avg,P99,QPS,GPU%\n2,200,300,10,40\n4,210,320,19,60\n",
        "N;Time per request (ms);99p;Infer/sec\n2;200;300;10\n4;210;320;19\n",
        "Parallel requests,mean [ms],99% [ms],Req/Sec,Std. Dev.\n2,200,300,10,3\n4,210,320,19,4\n",
        "\ufeffconnections,latency avg,latency 99%,requests/sec\n2,200ms,300ms,10\n4,210ms,320ms,19\n",
    ],
)
def test_one_table_in_many_spellings_is_one_table(reading, text):
    assert figures(reading(text)) == [(2, 10, pytest.approx(0.2), pytest.approx(0.3)), (4, 19, 0.21, 0.32)]


def test_a_unit_that_is_missing_follows_from_littles_law_and_is_told(reading):
    imported = reading("threads,QPS,mean\n1,2.8,357\n4,9.6,417\n8,14.2,563\n")
    assert figures(imported)[0][:3] == (1, 2.8, pytest.approx(0.357))
    assert imported.notes == ("mean: no unit given; read as ms, with which rate × latency agrees with the concurrency",)


def test_a_table_whose_unit_nothing_tells_is_refused(reading):
    with pytest.raises(ConfigError, match=r"write it into the heading, as in `mean \(ms\)`"):
        reading("name,mean,throughput\na,12,100\nb,13,90\n")


def test_rows_without_figures_and_broken_rows_are_counted(reading):
    imported = reading("concurrency,mean_ms,qps\n1,10,100\n2,-,n/a\n3,11\n4,12,300\n")
    assert imported.rows.kept == 2
    assert imported.rows.dropped == {"another number of cells than the heading": 1, "no figure in it": 1}
    assert [level.row for level in imported.levels] == [1, 4]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "name,value\nx,1\n", "just prose about a latency\n"])
def test_what_is_no_results_table_is_not_read_as_one(reading, text):
    with pytest.raises(ConfigError, match="not understood; it begins"):
        reading(text)


def test_jmeters_aggregate_report_is_in_milliseconds_and_sometimes_per_minute(reading):
    heading = "Label,# Samples,Average,Median,90% Line,95% Line,99% Line,Min,Max,Error %,Throughput,Received KB/sec\n"
    rows = (
        "GET /,600,100,90,150,180,300,20,400,1.00%,30.0/min,9.1\nTOTAL,600,100,90,150,180,300,20,400,1.00%,0.5/sec,9\n"
    )
    first, whole = reading(heading + rows).levels
    assert (first.requests, first.errors, first.mean_s, first.throughput_rps) == (600, 6, 0.1, 0.5)
    assert first.percentiles_s == {0.99: 0.3, 0.95: 0.18, 0.9: 0.15, 0.5: 0.09}
    assert whole.throughput_rps == 0.5
