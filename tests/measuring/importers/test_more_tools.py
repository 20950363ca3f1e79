"""Are files of ab, autocannon and h2load, and other outputs of JMeter, Locust and k6, read as they are meant?"""

from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.audit import audit
from perfkit.measuring.importers.formats import read_file

SAMPLES = Path(__file__).parent / "samples"


def sample(name):
    return read_file(SAMPLES / name)


def text(name):
    return (SAMPLES / name).read_text("utf-8")


def figures(level):
    return level.requests, level.errors, level.duration_s, level.throughput_rps, level.mean_s, level.max_s


def test_ab_counts_replies_of_another_length_as_no_errors(reading):
    imported = sample("ab.txt")
    (run,) = imported.levels
    assert figures(run) == (1000, 110, 2.0, 500.0, 0.007, 0.017)
    assert run.percentiles_s == {0.5: 0.009, 0.9: 0.011, 0.99: 0.016}
    assert any("130 “failed” requests" in note for note in imported.notes)
    with pytest.raises(ConfigError, match="an ab report without a result"):
        reading(text("ab.txt")[: text("ab.txt").index("Complete")])


def test_an_ab_list_that_is_cut_misses_the_slowest_and_gives_no_percentile(reading):
    (whole,) = sample("ab_requests.tsv").levels
    assert (whole.requests, whole.max_s, whole.errors, whole.grade) == (3, 0.02, None, None)
    (cut,) = reading(text("ab_requests.tsv")[:-12]).levels
    assert (cut.requests, cut.max_s, cut.mean_s, cut.percentiles_s) == (2, None, None, {})


def test_an_ab_percentile_table_has_its_ends_as_minimum_and_maximum():
    (level,) = sample("ab_percentiles.csv").levels
    assert (level.min_s, level.max_s, level.requests) == (0.0001, 0.0165, None)
    assert level.percentiles_s == {0.5: 0.0105, 0.9: 0.01125, 0.99: 0.01575}


def test_autocannon_keeps_lost_requests_apart_from_error_replies():
    imported = sample("autocannon.json")
    (run,) = imported.levels
    assert figures(run) == (4010, 95, 5, 800.0, pytest.approx(0.0098), 0.028)
    assert run.percentiles_s[0.975] == 0.012
    assert [finding.check for finding in audit(imported)] == ["censored"]


def test_latencies_that_autocannon_made_up_are_not_taken(reading):
    (run,) = reading(text("autocannon.json").replace('"totalCount":4000', '"totalCount":41000')).levels
    assert (run.mean_s, run.percentiles_s, run.requests) == (None, {}, 4010)


def test_autocannons_tables_count_by_status():
    (run,) = sample("autocannon.txt").levels
    assert figures(run) == (2800, 100, 4.0, 700.0, 0.0115, 0.045)
    assert run.percentiles_s == {0.025: 0.009, 0.5: 0.011, 0.975: 0.016, 0.99: 0.025}


def test_h2load_has_no_percentiles_and_its_clients_may_carry_several_requests(reading):
    (run,) = sample("h2load.txt").levels
    assert figures(run) == (1500, 40, None, 1000.0, 0.0099, 0.0128)
    assert (run.timeouts, run.concurrency, run.percentiles_s) == (6, 10, {})
    assert reading(text("h2load.txt").replace("http/1.1", "h2c")).levels[0].concurrency is None
    with pytest.raises(ConfigError, match="an h2load report without a result"):
        reading(text("h2load.txt")[:120])


def test_an_h2load_log_is_in_microseconds():
    (whole,) = sample("h2load_log.tsv").levels
    assert (whole.requests, whole.errors, whole.max_s) == (3, 1, 0.0115)
    assert whole.duration_s == pytest.approx(0.0119)


def test_jmeter_xml_counts_one_level_of_nested_samples():
    imported = sample("jmeter.xml")
    assert imported.rows.dropped == {"row of a transaction controller (its samplers are counted)": 1}
    assert [level.name for level in imported.levels] == ["all requests", 'first "A"', "second"]
    assert (imported.levels[0].requests, imported.levels[0].errors, imported.levels[0].max_s) == (2, 1, 0.018)


def test_locusts_histogram_gives_rounded_percentiles():
    (level,) = sample("locust.json").levels
    assert figures(level) == (1000, 20, 10.0, 100.0, 0.014, 0.3261)
    assert level.percentiles_s == {0.5: 0.011, 0.9: 0.011, 0.95: 0.011, 0.99: 0.31}


def test_k6s_text_summary_takes_units_value_by_value():
    imported = sample("k6.txt")
    (run,) = imported.levels
    assert figures(run) == (1000, 20, 4.0, 250.0, 0.0115, 1.2)
    assert run.min_s == 0.0009
    assert [finding.check for finding in audit(imported)] == ["load_not_delivered"]


def test_single_requests_are_graded_and_summaries_are_not():
    assert sample("jmeter.csv").levels[0].grade == "short"
    assert sample("wrk.txt").levels[0].grade is None
