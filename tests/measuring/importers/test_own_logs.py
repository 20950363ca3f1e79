"""Are the logs that people's own scripts write read only as far as they tell what they hold?"""

from pathlib import Path

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.importers.formats import read_file

SAMPLES = Path(__file__).parent / "samples"


def test_a_workers_hooks_become_requests_and_what_has_no_pair_is_counted():
    imported = read_file(SAMPLES / "hook_log.csv")
    (level,) = imported.levels
    assert (level.requests, level.errors, level.mean_s) == (2, None, pytest.approx(0.5))
    assert imported.requests.latency_ns.tolist() == [400_000_000, 600_000_000]
    assert (imported.rows.read, imported.rows.kept) == (8, 4)
    assert imported.rows.dropped == {"hook of another kind": 3, "pre or post without its pair": 1}


def test_a_hook_log_in_milliseconds_is_not_taken_for_seconds(reading):
    text = (SAMPLES / "hook_log.csv").read_text().replace(".", "")
    with pytest.raises(ConfigError, match="time that is no number of epoch seconds"):
        reading(text)


def test_single_times_are_told_by_what_was_called():
    imported = read_file(SAMPLES / "single_times.csv")
    assert [(level.name, level.requests, level.max_s) for level in imported.levels] == [
        ("all requests", 3, 0.8125),
        ("small", 2, 0.8125),
        ("large", 1, 0.095),
    ]
    assert imported.levels[0].throughput_rps is None
    assert imported.rows.dropped == {"no time in its cell": 1}


def test_single_times_without_a_unit_are_refused_with_the_remedy(reading):
    with pytest.raises(ConfigError, match=r"nothing tells their unit; write it into the heading, as in `time \(s\)`"):
        reading("model,n,time\nsmall,1,17.5\nsmall,1,0.72\n")
    assert reading("model,n,time\nsmall,1,17.5 ms\nsmall,1,0.72 ms\n").levels[0].max_s == 0.0175


def test_instants_are_no_latencies(reading):
    with pytest.raises(ConfigError, match="only grows, so it holds instants"):
        reading("sensor,time (s)\n" + "".join(f"a,{10 + n}\n" for n in range(12)))
