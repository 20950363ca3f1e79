"""Does the page hold everything, as text, with no way out?"""

import base64
import dataclasses
import hashlib
import json
import re

import pytest

from perfkit.errors import ArchiveError
from perfkit.showing.report import render_report, write_report

HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7*7 }}'


def scripts_of(page):
    """Every script element as (attributes, text)."""
    return re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)


def text_of(page):
    """What a reader sees: no scripts, no styles, no tags."""
    without = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without))


def test_the_page_tells_the_whole_story(report):
    text = text_of(render_report(report))
    for part in (
        "Demo of minilm",
        "2026-11-30 10:12 UTC",
        "Set batch.max_size to 8: most throughput inside the budget.",
        "92.1 req/s 88.9 to 95.3",
        "171 ms 166 to 176 ms",
        "203 ms 187 ms or more",
        "at least 653 ms a value needs 34.5 s",
        "unsteady why throughput of three windows: max/min 1.17, allowed 1.10",
        "void why generator lateness P99 31 ms, allowed 2 ms",
        "Knee: workers 2 to 4 (elasticity below 0.1 from 2; farthest above the chord at 4).",
        "Knee of mixed lengths: batch.max_size 1 (elasticity below 0.1).",
        "(judged by P95)",
        "default against recommended",
        "faster: throughput +98 % (95 % CI +91 to +104 %, 5 + 5 rounds)",
        "Max batch size (mixed lengths): loop closed, concurrency 32, think_s 0 s.",
        "certificate: sound, 3 recorded",
        "packages.torch 2.13.0",
        "memory_bytes 8.00 GiB",
        "container –",
        "batch wait Time during which a free worker waited",
    ):
        assert part in text


GPU = {
    "gpu": "GPU-7",
    "name": "Stub H200",
    "simulated": False,
    "gpu_util_ratio": 1.0,
    "memory_util_ratio": 0.4,
    "sm_active_ratio": 0.01,
    "sm_occupancy_ratio": None,
    "tensor_active_ratio": None,
    "dram_active_ratio": None,
    "memory_used_bytes": 40 * 2.0**30,
    "memory_total_bytes": 141 * 2.0**30,
    "sm_clock_hz": 1.98e9,
    "throttles": ["power cap"],
    "power_w": 650.0,
    "energy_per_request_j": 0.0412,
    "missing": {"pcie": "not offered here", "history": "not offered here"},
}


def test_a_point_with_a_gpu_has_its_figures_its_gaps_and_its_chart_over_time(report, points):
    point = {**points["workers"][0], "gpus": [GPU]}
    section = {**report.scans[0], "series": {"": [point]}, "knee": None, "best": None}
    columns = {"gpu": ["GPU-7"], "elapsed_s": [0.0], "name": ["power"], "value": [650.0]}
    remarks = ["gpu: sampler used 12 ms of CPU in 3.1 s"]
    page = render_report(dataclasses.replace(report, scans=[section], gpu=columns, remarks=remarks))
    text = text_of(page)
    row = "100 % 1.00 % – 40.0 GiB of 141 GiB 650 W 41.2 mJ 1.98 GHz power cap"
    for part in (row, "pcie, history not available: not offered here", "GPU over time", *remarks):
        assert part in text
    assert "power (W)" in page


def test_a_point_without_a_gpu_says_nothing_of_one(report):
    assert "What the GPU did" not in text_of(render_report(report))


def test_a_void_point_shows_no_figure(report):
    row = re.search(r"mixed lengths, 8 (.*?) void", text_of(render_report(report)))[1]
    assert row.split() == ["–", "–", "–", "–", "–", "–", "88.0", "%", "1.86", "396"]


def test_simulated_is_said_in_a_banner_in_the_title_and_in_every_chart(report, points):
    for series in (points["workers"], points["short"], points["mixed"]):
        for point in series:
            point["simulated"] = True
    page = render_report(dataclasses.replace(report, simulated=True))
    assert "Simulated: these figures come from the simulated device" in text_of(page)
    assert "<title>Demo of minilm (simulated)</title>" in page
    descriptions = re.findall(r'data-description="([^"]*)"', page)
    assert len(descriptions) == 6
    assert all(description.endswith("(simulated)") for description in descriptions)


def test_a_real_run_is_not_called_simulated(report):
    assert "Simulated:" not in text_of(render_report(report))


def test_a_missing_flame_graph_says_why(report):
    missing = dataclasses.replace(report, flame=None, flame_missing_reason="py-spy may not attach (ptrace_scope is 2)")
    page = render_report(missing)
    assert "No flame graph: py-spy may not attach (ptrace_scope is 2)." in text_of(page)
    assert 'data-flame="' not in page


def test_hostile_names_stay_text_wherever_they_stand(report, points):
    point = points["workers"][0]
    point["reasons"] = [HOSTILE]
    point["errors"] = {HOSTILE: 1}
    point["load"][HOSTILE] = HOSTILE
    point["grade"] = "short"
    point["checks"] = [
        {"name": HOSTILE, "passed": True, "figure": 1, "threshold": 1, "origin": HOSTILE, "reason": HOSTILE}
    ]
    flame = json.loads(json.dumps(report.flame))
    flame["names"][0] = flame["title"] = HOSTILE
    page = render_report(
        dataclasses.replace(
            report,
            title=HOSTILE,
            created=HOSTILE,
            recommendation=HOSTILE,
            scans=[
                {
                    "title": HOSTILE,
                    "varied": "workers",
                    "series": {HOSTILE: points["workers"]},
                    "knee": None,
                    "best": None,
                }
            ],
            flame=flame,
            comparison={HOSTILE: point},
            comparison_verdict=HOSTILE,
            environment={HOSTILE: HOSTILE},
        )
    )
    assert "<img" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "alert(2)</script>" not in page
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", page)[0]
    assert not [text for attributes, text in scripts_of(page) if text == "alert(2)"]


def test_only_the_scripts_of_the_page_may_run_and_nothing_may_be_fetched(report):
    page = render_report(report)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    running = [text for attributes, text in scripts_of(page) if "application/json" not in attributes]
    digests = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in running]
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {' '.join(digests)}",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert len(running) == 3


def test_plotly_stands_in_the_page_once_and_no_other_part_names_an_address(report):
    page = render_report(report)
    assert page.count("* plotly.js v") == 1
    others = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)
    assert "://" not in others
    assert not re.search(r"\b(src|href)=", others)


def test_a_single_run_is_a_report_without_curves(report, points):
    point = points["workers"][0]
    point["varied"] = {}
    one = {"title": "One run", "varied": "", "series": {"": [point]}, "knee": None, "best": None}
    page = render_report(dataclasses.replace(report, scans=[one], comparison=None))
    assert re.findall(r'data-figure="([^"]*)"', page) == ["ledger-0"]


def test_the_file_appears_whole_and_replaces_the_one_before(report, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old", "utf-8")
    write_report(path, report)
    assert path.read_text("utf-8") == render_report(report)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_report_that_cannot_be_written_is_one_clear_error(report, tmp_path):
    with pytest.raises(
        ArchiveError, match=r"cannot write the report .*No such file or directory; give a path in a folder"
    ):
        write_report(tmp_path / "absent" / "report.html", report)


def test_a_scan_without_results_says_that_there_is_no_curve(report, points):
    for point in points["workers"]:
        point |= {"grade": "void", "throughput_rps": {"value": None, "low": None, "high": None}, "latency_s": {}}
    one = {"title": "Threads", "varied": "workers", "series": {"": points["workers"]}, "knee": None, "best": None}
    page = render_report(dataclasses.replace(report, scans=[one], comparison=None))
    assert "No curve: fewer than two points have a result." in text_of(page)
    assert re.findall(r'data-figure="([^"]*)"', page) == ["ledger-0"]
