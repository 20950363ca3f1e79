"""Does the page of imported files tell what they say, and let nothing of them out of its place?"""

import json
import re

import numpy as np
import pytest

from perfkit.measuring.collectors.collector import SeriesRow
from perfkit.measuring.importers.foreignrun import judged
from perfkit.measuring.importers.imported import Imported, Level, Metric, Profile, Requests, Rows, Timing, Weight
from perfkit.measuring.importers.stacktree import TreeBuilder
from perfkit.showing.report.foreign import render_imports, section_of
from perfkit.showing.report.foreignrows import NO_CERTIFICATE, facts, finding_text, tables

HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7*7 }}'
TIMING = Timing(unit="ms", clock="none", scope="cumulative", basis="sent")


def imported(**known):
    rows = Rows(read=3, kept=2, dropped={"cut row": 1})
    return Imported(**{"path": "x/some.csv", "format": "test", "rows": rows, "timing": TIMING, **known})


def texts(table):
    return [tuple(figure.text for figure in row) for row in table.rows]


LEVELS = (
    Level(name="one", row=1, concurrency=1, throughput_rps=10.0, mean_s=0.1, percentiles_s={0.99: 0.2}),
    Level(name="four", row=2, concurrency=4, throughput_rps=25.0, mean_s=0.4, percentiles_s={0.99: 0.9}),
)


def test_facts_count_what_was_read_kept_and_dropped():
    assert list(facts(imported(levels=LEVELS, notes=("a note",)))) == [
        "test: 3 rows read, 2 kept",
        "  1 dropped: cut row",
        "unit ms · clock: none · latencies over the whole run, counted from the actual send "
        "(a stalled client hides its own waiting)",
        "note: a note",
        NO_CERTIFICATE,
    ]


def test_a_column_that_no_level_fills_is_left_out():
    (table,) = tables(imported(levels=LEVELS))
    assert table.headings == ("row", "result", "clients", "req/s", "mean", "P99")
    assert texts(table)[1] == ("2", "four", "4", "25.0", "400 ms", "900 ms")


def test_values_over_time_and_metrics_carry_the_units_of_people():
    series = tuple(SeriesRow(n, "gpu", "memory_used", "bytes", float(n << 30)) for n in (1, 3))
    metrics = (Metric(name="x_bytes", labels={"a": "b"}, kind="gauge", value=2048.0),)
    buckets = (Metric(name="x_bucket", labels={}, kind="histogram", value=1.0),)
    over_time, scrape = tables(imported(series=series, metrics=metrics + buckets))
    assert texts(over_time) == [("gpu", "memory_used", "2", "1.00 GiB", "2.00 GiB", "3.00 GiB")]
    assert texts(scrape) == [("2.00 KiB", "gauge", "x_bytes a=b")]
    assert scrape.caption == "1 more (buckets and the like) are in --json"


def test_a_finding_is_told_with_units():
    (finding,) = judged(imported(levels=LEVELS)).findings
    assert finding_text(finding)[:2] == (
        "row 2, little: four: 25.0 req/s × 400 ms = 10.0 requests in flight, more than the 4 there can be",
        "in flight 10, concurrency 4, throughput 25.0 req/s, mean 400 ms",
    )


def page_of(*files, refused=()):
    return render_imports([section_of(judged(one), at) for at, one in enumerate(files)], "2026-11-30", refused)


def test_the_page_holds_tables_findings_pictures_and_the_flame_graph():
    builder = TreeBuilder()
    builder.add("main", ["work"], 3.0)
    weight = Weight(name="work", own=3.0, total=3.0, count=1)
    profile = Profile(name="all", unit="samples", total=3.0, samples=3, top=(weight,), tree=builder.tree())
    page = page_of(imported(levels=LEVELS, is_range=True), imported(profiles=(profile,)), refused=["b.csv: empty"])
    charts = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', page)
    assert [name for name, _ in charts] == ["file-0-load", "flame-1"]
    assert json.loads(charts[1][1])["recordings"][0]["self"] == [0.0, 3.0]
    assert page.count("What cannot be right") == 1
    assert "row 2, little: four" in page
    assert "b.csv: empty" in page


def test_nothing_of_a_hostile_file_leaves_its_place():
    level = Level(name=HOSTILE, row=1, concurrency=1, throughput_rps=25.0, mean_s=0.4)
    page = page_of(
        imported(
            path=HOSTILE,
            levels=(level, level),
            is_range=True,
            notes=(HOSTILE,),
            series=(SeriesRow(1, HOSTILE, HOSTILE, HOSTILE, 1.0),),
            metrics=(Metric(name=HOSTILE, labels={HOSTILE: HOSTILE}, kind=HOSTILE, value=1.0),),
        )
    )
    assert "<img src=x" not in page
    assert "<script>alert(2)" not in page
    assert re.findall(r"(?:src|href)=\"(?!#)", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)) == []


def requests_of(starts_s, errors=()):
    start_ns = np.array(starts_s) * 10**9
    return Requests(
        start_ns=start_ns.astype(np.int64),
        latency_ns=np.full(len(start_ns), 2_000_000),
        is_error=np.isin(np.arange(len(start_ns)), errors),
        name=np.zeros(len(start_ns), dtype=np.uint16),
        names=("predict",),
        stride=1,
    )


def charts_of(requests):
    return {chart.name: json.loads(chart.json) for chart in section_of(judged(imported(requests=requests)), 0).charts}


def test_single_requests_are_drawn_by_percentile_and_over_time():
    charts = charts_of(requests_of(np.arange(0, 6, 0.01), errors=(0, 1)))
    assert list(charts) == ["file-0-latency", "file-0-time"]
    traces = charts["file-0-time"]["data"][:4]
    curves = {trace["hovertemplate"].split(", ")[1].split(":")[0]: trace["y"] for trace in traces}
    assert curves["median latency"][1:-1] == [2.0] * (len(curves["median latency"]) - 2)
    slice_s = 5.99 / 60
    assert sum(curves["good replies"]) * slice_s == pytest.approx(598)
    assert sum(curves["rejected or failed"]) * slice_s == pytest.approx(2)


def test_requests_that_no_clock_orders_are_not_drawn_over_time():
    assert list(charts_of(requests_of([3, 1, 2]))) == ["file-0-latency"]
