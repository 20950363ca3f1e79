"""Are vmstat, mpstat, pidstat, iostat and perf stat read with the right unit, instant and source?"""

from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.formats import read_file
from perfkit.measuring.importers.sysstat import SINCE_BOOT

SAMPLES = Path(__file__).parent / "samples"
MIDNIGHT_NS = 1_772_496_000 * 10**9  # 2026-03-03, as vmstat's own zone


def values(imported, name):
    """(instant in seconds since the first, source, value) of one series name."""
    first = min(row.time_ns for row in imported.series)
    return [((row.time_ns - first) // 10**9, row.source, row.value) for row in imported.series if row.name == name]


def test_vmstats_first_report_is_since_boot_and_its_memory_has_no_known_unit():
    imported = read_file(SAMPLES / "vmstat.txt")
    assert imported.rows.dropped == {SINCE_BOOT: 1}
    assert values(imported, "cpu_idle") == [(0, "machine", 0.36), (1, "machine", 0.16)]
    assert values(imported, "context_switches") == [(0, "machine", 4000.0), (1, "machine", 5000.0)]
    assert imported.series[-1].time_ns == MIDNIGHT_NS
    assert "memory and swap columns are left out: the file does not say their unit" in imported.notes
    assert {row.unit for row in imported.series} == {"threads", "1/s", "ratio"}


def test_mpstats_times_of_day_go_on_past_midnight_and_its_average_is_no_row():
    imported = read_file(SAMPLES / "mpstat.txt")
    assert values(imported, "cpu_idle") == [(0, "cpu", 0.54), (0, "cpu:0", 0.34), (1, "cpu", 0.74), (1, "cpu:0", 0.64)]
    assert imported.rows.dropped == {"average over the rows above it": 1}
    assert imported.timing.clock == "time of day, no date"
    assert values(read_file(SAMPLES / "mpstat.json"), "cpu_idle") == [
        (0, "cpu", 0.55),
        (0, "cpu:0", 0.35),
        (1, "cpu", 0.75),
        (1, "cpu:0", 0.65),
    ]


def test_a_process_may_use_more_than_one_core_and_its_threads_are_told_apart():
    imported = read_file(SAMPLES / "pidstat.txt")
    assert values(imported, "cpu_of_one_core") == [(0, "pid:700", 1.3), (0, "tid:701", 0.95)]
    assert values(imported, "memory_resident") == [(0, "pid:700", 2048 * 1024), (0, "tid:701", 2048 * 1024)]


def test_iostats_first_report_is_dropped_for_processor_and_disk_alike():
    imported = read_file(SAMPLES / "iostat.txt")
    assert imported.rows.dropped == {SINCE_BOOT: 2}
    assert values(imported, "cpu_idle") == [(0, "machine", 0.65)]
    assert values(imported, "written") == [(0, "disk:sda", 64 * 1024)]
    assert values(imported, "busy") == [(0, "disk:sda", 0.01)]


def test_a_cut_mpstat_document_is_refused(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text((SAMPLES / "mpstat.json").read_text()[:-40])
    with pytest.raises(ConfigError, match="an mpstat document that is cut or broken"):
        read_file(path)


@pytest.mark.parametrize("name", ["perf_stat.txt", "perf_stat.csv"])
def test_perf_stat_gives_times_in_seconds_and_what_is_not_counted_is_absent(name):
    imported = read_file(SAMPLES / name)
    metrics = {metric.name: metric.value for metric in imported.metrics}
    assert metrics["task-clock_seconds"] == pytest.approx(1.8025)
    assert metrics["context-switches"] == 12640
    assert "cycles" not in metrics
    assert imported.rows.dropped == {"event that this machine does not count": 1}


def test_perf_reports_shares_become_weights_of_the_event():
    (profile,) = read_file(SAMPLES / "perf_report.txt").profiles
    assert (profile.unit, profile.total, profile.samples) == ("ns of CPU", 2e9, 1000)
    assert [(one.name, one.own) for one in profile.top] == [
        ("matmul_kernel", pytest.approx(1.21e9)),
        ("page_fault", pytest.approx(0.605e9)),
        ("eval_frame(int, long)", pytest.approx(0.185e9)),
    ]


def test_pytorchs_table_gives_own_and_whole_time_by_name():
    (profile,) = read_file(SAMPLES / "torch_table.txt").profiles
    assert (profile.unit, profile.total) == ("s", 0.04)
    assert [(one.name, one.own, one.total, one.count) for one in profile.top] == [
        ("wait for lock", 0.03, 0.03, 4),
        ("forward", 0.008, 0.01, 4),
        ("aten::matm...", 0.002, 0.002, 4),
    ]


def test_jmeters_console_says_the_whole_run_once():
    imported = read_file(SAMPLES / "jmeter_console.txt")
    (level,) = imported.levels
    assert (level.requests, level.errors, level.throughput_rps, level.duration_s) == (150, 12, 68.2, 2.2)
    assert (level.mean_s, level.min_s, level.max_s, level.concurrency) == (0.027, 0.002, 0.21, 3)
    assert imported.rows.dropped == {"part of the run (summary = has the whole)": 2}


def test_without_the_whole_the_parts_of_a_console_are_told_apart(tmp_path):
    lines = (SAMPLES / "jmeter_console.txt").read_text().splitlines(keepends=True)
    path = tmp_path / "console"
    path.write_text("".join(line for line in lines if "summary =" not in line))
    assert [(one.name, one.requests, one.duration_s) for one in read_file(path).levels] == [
        ("part 1", 90, 1.2),
        ("part 2", 60, 1.0),
    ]


def test_locusts_failures_are_counted_by_request_and_error():
    metrics = read_file(SAMPLES / "locust_failures.csv").metrics
    assert [(one.labels["name"], one.labels["error"], one.value) for one in metrics] == [
        ("POST /predict", "HTTPError('503, too busy')", 41.0),
        ("GET /health", "ConnectionResetError(104)", 2.0),
    ]


def test_perf_analyzers_text_divides_by_its_batch_size_and_tells_where_the_time_went(reading):
    text = (SAMPLES / "perf_analyzer.txt").read_text()
    (plain,) = read_file(SAMPLES / "perf_analyzer.txt").levels
    imported = reading(text.replace("Batch size: 1", "Batch size: 4"))
    assert "Batch size: 4" in text.replace("Batch size: 1", "Batch size: 4")
    assert imported.levels[0].throughput_rps == pytest.approx(plain.throughput_rps / 4)
    assert "rates are requests a second: throughput / batch size 4" in imported.notes


def test_localised_numbers_are_not_taken_a_thousandfold(reading):
    german = reading((SAMPLES / "perf_stat.txt").read_text().replace(",", "_").replace(".", ",").replace("_", "."))
    metrics = {metric.name: metric.value for metric in german.metrics}
    assert (metrics["task-clock_seconds"], metrics["context-switches"]) == (pytest.approx(1.8025), 12640)
    cores = reading((SAMPLES / "mpstat.txt").read_text().replace(".00", ",00"))
    assert values(cores, "cpu_idle") == values(read_file(SAMPLES / "mpstat.txt"), "cpu_idle")
