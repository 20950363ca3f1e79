"""Can a table be read at 100 columns, whatever it holds?"""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from perfkit.measuring.analysis.flame import TopFrame
from perfkit.measuring.archive.entries import RunEntry
from perfkit.showing.cli.tables import frames_table, points_table, remarks, runs_table

POINTS = json.loads((Path(__file__).parents[1] / "plots" / "points.json").read_text("utf-8"))


def lines_of(table, width=100):
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, markup=False).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def quantile(value=None, low=None, high=None, needs_s=None):
    return {"value": value, "low": low, "high": high, "needs_s": needs_s, "n": 100, "n_eff": 90.0}


def point(grade="sound", **changes):
    return {
        "varied": {"workers": 2},
        "load": {"loop": "closed", "concurrency": 8},
        "throughput_rps": {"value": 267.0, "low": 265.2, "high": 269.1},
        "latency_s": {"p50": quantile(0.1, 0.09, 0.11), "p95": quantile(None, 0.2, None, 2.5), "p99": quantile()},
        "stages_s": {"preprocess_wait": 0.001, "queue_wait": 0.002, "batch_wait": 0.0005},
        "batch_fill_ratio": 0.5,
        "cpu_cores_used": 1.25,
        "grade": grade,
        "reasons": [],
        "requests": 1240,
        "errors": {},
        **changes,
    }


def test_a_figure_stands_above_its_interval_or_what_it_needs():
    assert lines_of(points_table([point()], "minilm · closed loop")) == [
        "minilm · closed loop",
        "                                                  queue wait    fill",
        "workers    req/s          P50           P95  P99  batch wait   cores  grade",
        "─" * 75,
        "2            267       100 ms      ≥ 200 ms    –     3.00 ms  50.0 %  sound",
        "         265–269  90.0–110 ms  needs 2.50 s           500 µs    1.25",
    ]


def test_what_is_not_known_is_a_dash_and_never_a_zero():
    bare = point(
        "void",
        throughput_rps={"value": None, "low": None, "high": None},
        latency_s=dict.fromkeys(("p50", "p95", "p99"), quantile()),
        stages_s={},
        batch_fill_ratio=None,
        cpu_cores_used=None,
    )
    row = lines_of(points_table([bare], ""))[-2:]
    assert row[0].split() == ["2", "–", "–", "–", "–", "–", "–", "void"]
    assert row[1].split() == ["–", "–"]


@pytest.mark.parametrize("name", sorted(name for name, held in POINTS.items() if isinstance(held, list)))
def test_no_figure_is_cut_off_at_100_columns(name):
    text = "\n".join(lines_of(points_table(POINTS[name], "a title")))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_where_there_is_little_room_columns_move_together_before_a_figure_is_broken():
    wide = {"value": 13392.0, "low": 10177.0, "high": 16607.0}
    grid = point(varied={"workers": 2, "concurrency": 8}, throughput_rps=wide)
    for width in (100, 86):
        text = "\n".join(lines_of(points_table([grid], ""), width))
        assert [one in text for one in ("10,177–16,607", "90.0–110 ms", "needs 2.50 s")] == [True] * 3
        assert max(map(len, text.splitlines())) <= width


def test_brackets_and_colons_of_a_user_are_shown_as_they_are():
    lines = lines_of(points_table([point(varied={"payloads": "[bold]x[/].jsonl:smile:"})], "[red]a[/]"))
    assert lines[0] == "[red]a[/]"
    assert "[bold]x[/].jsonl:smile:" in lines[-2]


def test_each_point_that_is_not_sound_gives_its_decisive_reason_once():
    points = [
        point(),
        point("unsteady", varied={"workers": 4}, reasons=["latency drifted", "P99 needs 9 s"]),
        point("void", varied={"workers": 8, "seed": 1}, reasons=["Little: 2 against 3", "latency drifted"]),
    ]
    assert remarks(points) == ["workers=4: unsteady: latency drifted", "workers=8, seed=1: void: Little: 2 against 3"]


def test_failed_requests_are_told_whatever_the_grade():
    failing = point(errors={"http_400": 1234, "timed_out": 2})
    assert remarks([failing]) == ["workers=2: failed of 1,240 requests: http_400: 1,234, timed_out: 2"]


@pytest.mark.parametrize(
    ("ooms", "cap", "told"),
    [
        (0, 8, []),
        (1, 8, ["workers=2: the device ran out of memory 1 time"]),
        (3, 4, ["workers=2: the device ran out of memory 3 times; a batch holds at most 4 of 8 since"]),
    ],
)
def test_memory_that_ran_out_is_told_with_the_batches_that_it_left(ooms, cap, told):
    settings = {"batch": {"max_size": 8}}
    assert remarks([point(memory={"ooms": ooms, "retries": 0, "batch_cap": cap}, settings=settings)]) == told


def test_a_short_point_whose_cells_say_what_it_needs_gives_no_reason_again():
    known = dict.fromkeys(("p50", "p95", "p99"), quantile(0.1, 0.09, 0.11))
    unseen = "the rounds have too few requests to see where their warm-up ends"
    assert remarks([point("short", reasons=["P95 needs about 2.5 s"])]) == []
    assert remarks([point("short", varied={}, latency_s=known, reasons=[unseen])]) == [
        f"the only setting: short: {unseen}"
    ]


def test_the_frames_of_a_recording_say_how_many_looks_they_rest_on():
    stacks = {"mode": "gil", "sample_count": 63, "rate_hz": 100, "error_count": 3}
    frame = TopFrame(name="work (model.py)", self_count=30, total_count=60, self_ratio=0.5, total_ratio=1.0)
    assert lines_of(frames_table(stacks, [frame])) == [
        "threads that hold the GIL (gil) · 63 samples at 100 Hz, 3 failed",
        "  self  total  function",
        "──────────────────────────────",
        "50.0 %  100 %  work (model.py)",
    ]


def test_the_archive_names_the_folder_to_give_to_other_commands():
    entry = RunEntry(
        id="a", path=Path("perfkit-runs/scan-1"), kind="scan", state="complete", bytes=2048, model="noop", points=3
    )
    broken = RunEntry(id="b", path=Path("x"), kind="run", state="broken", bytes=1, reason="run.json is not whole JSON")
    simulated = RunEntry(
        id="c", path=Path("y"), kind="run", state="complete", bytes=0, model="s", simulated=True, grades={"void": 1}
    )
    rows = [line.split() for line in lines_of(runs_table([entry, simulated, broken]))[2:]]
    assert rows == [
        ["perfkit-runs/scan-1", "scan", "noop", "3", "2.00", "KiB"],
        ["y", "run", "s", "(simulated)", "0", "0", "B", "1", "void"],
        ["x", "run", "–", "0", "1", "B", "broken:", "run.json", "is", "not", "whole", "JSON"],
    ]
