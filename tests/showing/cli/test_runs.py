"""Can a person list, show, pin and prune what was archived?"""

from __future__ import annotations

import dataclasses
import os
import runpy
import shutil
from pathlib import Path

import pytest

from perfkit.measuring.archive.folder import contents_of, load_run, save_run
from perfkit.measuring.archive.scanfolder import create_scan
from perfkit.measuring.archive.storedscan import ScanHeader
from perfkit.resources import data_path

PLANTED = Path(__file__).parents[2] / "measuring" / "archive" / "planted.py"


@pytest.fixture
def archive(tmp_path):
    """Runs of three days, each of another model; the oldest was measured from a known commit."""
    folder = tmp_path / "perfkit-runs"
    tiny = contents_of(load_run(data_path("runs", "v1-tiny")))
    for day, model in ((1, "minilm"), (2, "simulated:gpu"), (3, "noop")):
        changes = {
            "id": f"2025010{day}-000000-aaaa",
            "created": f"2025-01-0{day}T00:00:00+00:00",
            "settings": {"model": model},
            "source": {"commit": "0123abc", "dirty": True} if day == 1 else {},
        }
        manifest = dataclasses.replace(tiny.manifest, **changes)
        save_run(folder / f"day-{day}", dataclasses.replace(tiny, manifest=manifest))
    return folder


def names(ended):
    return [Path(run["path"]).name for run in ended.document["runs"]]


def test_runs_alone_lists_the_usual_folder(perfkit, archive):
    assert perfkit("runs").out == perfkit("runs", "list").out == perfkit("runs", "list", "perfkit-runs").out


def test_the_list_is_narrowed_by_model_and_time(perfkit, archive):
    assert names(perfkit("runs", "list", "--json")) == ["day-3", "day-2", "day-1"]
    assert names(perfkit("runs", "list", "--json", "--model", "simulated")) == ["day-2"]
    assert names(perfkit("runs", "list", "--json", "--since", "2025-01-02")) == ["day-3", "day-2"]
    assert names(perfkit("runs", "list", "--json", "--since", "1d")) == []
    ended = perfkit("runs", "list", "--model", "resnet")
    assert (ended.code, ended.line) == (0, "none of the 3 runs in perfkit-runs is of that model and time")
    assert perfkit("runs", "list", "--since", "soon").code == 2


def test_a_run_is_shown_by_a_beginning_of_its_id_with_everything_that_is_known(perfkit, archive):
    ended = perfkit("runs", "show", "20250101")
    assert (ended.code, ended.err) == (0, "")
    for text in ("run 20250101-000000-aaaa · complete · simulated", "model minilm", "commit 0123abc", "cores 2"):
        assert text in ended.out
    for text in ("requests.parquet", "note: planted: no collector ran", "every byte is as saved"):
        assert text in ended.out


def test_a_shown_run_as_json_holds_point_settings_code_and_files(perfkit, archive):
    document = perfkit("runs", "show", "day-1", "--json").document
    assert list(document)[:2] == ["schema", "simulated"]
    assert (document["run"]["commit"], document["source"]["dirty"]) == ("0123abc+", True)
    assert (len(document["points"]), document["settings"], document["problems"]) == (1, {"model": "minilm"}, [])
    assert set(document["files_bytes"]) >= {"requests.parquet", "stacks/default.json", "logs/server.log"}


def test_a_run_of_a_newer_perfkit_is_named_and_says_which_perfkit_opens_it(perfkit, archive):
    manifest = archive / "day-1" / "run.json"
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 2', 1))
    told = "has schema 2; this perfkit reads 1 and writes 1: open it with the perfkit that wrote it, or a newer one"
    for words in (("show", archive / "day-1"), ("export", archive / "day-1", "--as", "csv")):
        ended = perfkit("runs", *words)
        assert (ended.code, told in ended.line) == (3, True)
    broken = perfkit("runs", "list", "--json").document["runs"][-1]
    assert (broken["state"], told in broken["reason"]) == ("broken", True)


def test_rate_and_quantiles_can_be_recounted_from_the_raw_requests(perfkit, archive):
    assert "recounted" not in perfkit("runs", "show", "day-1").out
    ended = perfkit("runs", "show", "day-1", "--recount")
    assert (ended.code, "recounted from " in ended.out, " raw requests: " in ended.out) == (0, True, True)
    (found,) = perfkit("runs", "show", "day-1", "--recount", "--json").document["recounts"]
    assert sorted(found) == ["latency_s", "requests", "throughput_rps"]


def test_a_changed_byte_is_shown_and_is_no_success(perfkit, archive):
    (archive / "day-1" / "logs" / "server.log").write_text("forged")
    ended = perfkit("runs", "show", archive / "day-1")
    assert ended.code == 3
    assert "server.log is not what the run saved" in ended.out


def test_a_runs_page_beside_it_is_no_damage(perfkit, archive):
    assert perfkit("report", archive / "day-1").code == 0
    assert perfkit("runs", "show", "day-1").code == 0


def test_an_unfinished_scan_is_shown_as_far_as_it_is(perfkit, archive):
    planted = runpy.run_path(str(PLANTED))["planted_contents"]
    plan = {"points": [{"settings": {"model": "noop"}}], "order": [[0], [0]]}
    header = ScanHeader(id="scan-1", created="2025-01-05T00:00:00+00:00", simulated=True, plan=plan)
    with create_scan(archive / "scan", header) as scan:
        scan.save_part(scan.pending_parts()[0], planted(rounds=1))
    ended = perfkit("runs", "show", "scan-1")
    assert ended.code == 0
    assert "1 of 2 parts to measure; go on with --resume" in ended.out


def test_an_unknown_run_is_wrong_use_and_names_what_there_is(perfkit, archive):
    ended = perfkit("runs", "show", "2024")
    assert ended.code == 2
    assert ended.line.startswith("perfkit: no run in perfkit-runs matches '2024'; take one of: 20250103-000000-aaaa")


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("csv", ["batches.csv", "points.csv", "requests.csv", "series.csv"]),
        ("parquet", ["batches.parquet", "points.parquet", "requests.parquet", "series.parquet"]),
        ("speedscope", ["default.speedscope.json"]),
        ("json", None),
        ("report", None),
        ("perfetto", None),
    ],
)
def test_a_run_is_exported_to_where_it_is_wanted_and_never_over_something(perfkit, archive, tmp_path, form, names):
    ended = perfkit("runs", "export", "day-1", "--as", form, "--out", "mine")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [f"written: mine{f'/{name}' if name else ''}" for name in names or [""]]
    assert (tmp_path / "mine").is_dir() == bool(names)
    assert perfkit("runs", "export", "day-1", "--as", form, "--out", "mine").line == (
        "perfkit: mine is there already; name another place after --out"
    )


def test_an_export_is_named_after_its_run_and_told_as_json(perfkit, archive, tmp_path):
    document = perfkit("runs", "export", "day-2", "--as", "perfetto", "--requests", "4", "--json").document
    assert document == {
        "schema": 1,
        "simulated": True,
        "run": "20250102-000000-aaaa",
        "as": "perfetto",
        "files": ["20250102-000000-aaaa.trace.json"],
        "requests_taken": 4,
        "requests": 6,
    }
    ended = perfkit("runs", "export", "day-3", "--as", "perfetto", "--requests", "4")
    assert "the first 4 of 6 requests; --requests N takes more" in ended.out


def test_an_export_to_an_address_says_where_it_went(perfkit, archive, tmp_path):
    ended = perfkit("runs", "export", "day-1", "--as", "mlflow", "--to", tmp_path / "mlruns")
    assert (ended.code, ended.out) == (0, f"sent to {tmp_path / 'mlruns'}\n")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--as", "otlp"), 2, "--as otlp needs --to: where it goes, for example --to http://127.0.0.1:4318"),
        (("--as", "csv", "--to", "x"), 2, "--to is for mlflow and otlp; --as csv writes to --out"),
        (("--as", "otlp", "--to", "http://127.0.0.1:1", "--out", "x"), 2, "--out is for files"),
        (("--as", "otlp", "--to", "127.0.0.1"), 2, "'127.0.0.1' is no address of a receiver"),
        (("--as", "otlp", "--to", "http://127.0.0.1:1"), 4, "http://127.0.0.1:1/v1/traces does not take spans"),
        (("--as", "perfetto", "--requests", "0"), 2, "--requests is 0; give 1 or more"),
        (("--as", "csv", "--point", "0"), 2, "20250101-000000-aaaa is a run and has no points"),
        (("--as", "excel"), 2, "argument --as: invalid choice: 'excel'"),
    ],
)
def test_an_export_that_cannot_be_is_one_line(perfkit, archive, words, code, line):
    ended = perfkit("runs", "export", "day-1", *words)
    assert ended.code == code
    assert ended.line.startswith(f"perfkit: {line}")


def test_pruning_only_says_what_would_go_until_yes(perfkit, archive):
    ended = perfkit("runs", "prune", "--keep", "1")
    assert ended.code == 0
    assert [line.split()[2] for line in ended.out.splitlines()[:2]] == ["perfkit-runs/day-2", "perfkit-runs/day-1"]
    assert "would go: 2 of 3" in ended.out
    assert sorted(os.listdir(archive))[:3] == ["day-1", "day-2", "day-3"]


def test_pruning_removes_with_yes_and_leaves_what_is_pinned(perfkit, archive):
    assert perfkit("runs", "pin", "day-1", "--reason", "baseline").code == 0
    ended = perfkit("runs", "prune", "--older-than", "2d", "--keep", "1", "--yes")
    assert "removed: 1 of 3" in ended.out
    assert "stays: perfkit-runs/day-1 (pinned: baseline)" in ended.err
    assert names(perfkit("runs", "list", "--json")) == ["day-3", "day-1"]
    assert perfkit("runs", "unpin", "day-1").code == 0
    document = perfkit("runs", "prune", "--older-than", "2d", "--keep", "1", "--yes", "--json").document
    assert [(run["goes"], run["why"]) for run in document["runs"]] == [
        (False, "among the newest 1"),
        (True, "old enough to go"),
    ]
    assert names(perfkit("runs", "list", "--json")) == ["day-3"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "nothing says what may go; give --keep N, --older-than AGE, or both"),
        (("--older-than", "soon"), "'soon' is no age; write a number and s, m, h, d or w"),
        (("absent", "--keep", "1"), "absent is no folder"),
        (("perfkit-runs/day-1", "--keep", "0", "--yes"), "perfkit-runs/day-1 is a result itself"),
    ],
)
def test_pruning_refuses_what_is_not_clear(perfkit, archive, words, line):
    ended = perfkit("runs", "prune", *words)
    assert (ended.code, ended.line.startswith(f"perfkit: {line}")) == (2, True)
    assert len(list(archive.glob("day-*"))) == 3


def test_a_folder_that_holds_no_runs_has_nothing_to_prune(perfkit, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("")
    shutil.copytree(tmp_path / "photos", tmp_path / "photos" / "album")
    assert "removed: 0 of 0" in perfkit("runs", "prune", "photos", "--keep", "0", "--yes").out
    assert sorted(os.listdir(tmp_path / "photos")) == ["album", "cat.png"]
