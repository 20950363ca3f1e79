"""Does an imported file become a run that the archive opens, and come back as it was read?"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import load_run, verify_run
from perfkit.measuring.archive.runs import list_runs
from perfkit.measuring.experiment import open_run
from perfkit.measuring.importers.foreignrun import FLAME_NAME, LEVELS_NAME, is_foreign, judged, save_import
from perfkit.measuring.importers.formats import read_file
from perfkit.measuring.importers.readback import open_import

SAMPLES = Path(__file__).parent / "samples"


def saved(name, folder):
    run = judged(read_file(SAMPLES / name))
    return run, save_import(folder, run)


@pytest.mark.parametrize("sample", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_sample_comes_back_as_it_was_read(sample, tmp_path):
    run, stored = saved(sample.name, tmp_path)
    assert verify_run(stored.path) == []
    assert is_foreign(load_run(stored.path).manifest)
    back = open_import(load_run(stored.path))
    plain = [dataclasses.replace(one, tree=None) for one in run.imported.profiles]
    assert back.imported.profiles == tuple(plain)
    for part in ("path", "format", "rows", "timing", "levels", "metrics", "series", "is_range", "notes"):
        assert getattr(back.imported, part) == getattr(run.imported, part)
    assert (back.findings, back.flame) == (run.findings, run.flame)
    if run.imported.requests is not None:
        for column in ("start_ns", "latency_ns", "is_error"):
            np.testing.assert_array_equal(
                getattr(back.imported.requests, column), getattr(run.imported.requests, column)
            )


def test_single_requests_are_a_table_like_any_runs_with_null_for_what_is_not_known(tmp_path):
    run, stored = saved("jmeter.csv", tmp_path)
    table = pyarrow.parquet.read_table(stored.path / "requests.parquet").to_pandas()
    assert (table["received_ns"] - table["sent_ns"]).tolist() == run.imported.requests.latency_ns.tolist()
    assert set(table["end_state"]) <= {"ok", "failed"}
    assert table["scheduled_ns"].isna().all()
    assert table["compute_started_ns"].isna().all()
    assert set(table["name"]) == set(run.imported.requests.names)


def test_only_single_requests_are_certified(tmp_path):
    run, stored = saved("jmeter.csv", tmp_path)
    point = open_run(stored.path).point
    whole = run.imported.levels[0]
    assert (point["grade"], point["requests"], point["reasons"]) == (whole.grade, 20, list(whole.reasons))
    assert point["throughput_rps"] == {"value": whole.throughput_rps, "low": None, "high": None}
    assert point["latency_s"]["p99"]["value"] is None  # twenty requests
    entries = {entry["name"]: entry for entry in point["certificate"]["entries"]}
    assert point["certificate"]["grade"] == point["grade"]
    assert (entries["P99 sample"]["status"], entries["answers"]["figures"]) == ("fail", {"replies": 20})
    assert entries["stage sum"]["status"] == "not applicable"
    assert "actual send" in entries["coordinated omission"]["reason"]
    assert saved("wrk.txt", tmp_path)[1].manifest.certificate is None


def test_an_archive_of_imports_is_listed_like_one_of_runs(tmp_path):
    stored = [saved(name, tmp_path)[1] for name in ("wrk.txt", "jmeter.csv", "nvidia_smi.csv", "trace.json")]
    entries = list_runs(tmp_path)
    assert {(entry.path, entry.state, entry.title) for entry in entries} == {
        (one.path, "complete", one.manifest.title) for one in stored
    }
    assert LEVELS_NAME in stored[0].logs
    assert stored[2].tables == ("series",)
    assert FLAME_NAME in stored[3].logs


@pytest.mark.parametrize(
    ("name", "value"),
    [("levels", [{"name": "x"}]), ("levels", 3), ("timing", {"unit": "s"}), ("findings", [{}]), ("rows", None)],
)
def test_a_manifest_that_somebody_made_up_is_refused_in_words(name, value, tmp_path):
    stored = saved("wrk.txt", tmp_path)[1]
    where = stored.path / "run.json"
    document = json.loads(where.read_text())
    document["foreign"][name] = value
    where.write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match="holds no import that perfkit wrote"):
        open_import(load_run(stored.path))


def test_a_figure_that_is_no_number_is_refused(tmp_path):
    stored = saved("wrk.txt", tmp_path)[1]
    where = stored.path / "run.json"
    document = json.loads(where.read_text())
    document["foreign"]["levels"][0]["mean_s"] = "fast"
    where.write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match="mean_s is 'fast'"):
        open_import(load_run(stored.path))
