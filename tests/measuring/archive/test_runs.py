"""Are runs and scans listed newest first, broken ones named, and found by a prefix?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.archive.entries import RunEntry
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.archive.runs import find_run, list_runs
from perfkit.measuring.archive.scanfolder import create_scan


def save(folder, planted, **changes):
    contents = planted(rounds=1)
    manifest = dataclasses.replace(contents.manifest, **changes)
    return save_run(folder, dataclasses.replace(contents, manifest=manifest))


@pytest.fixture
def shelf(tmp_path, planted, header):
    """A folder with a run, an unfinished scan, a newer run, two broken folders and things that are no runs."""
    save(tmp_path / "old", planted, id="20250101-a", created="2025-01-01T10:00:00+02:00")
    save(tmp_path / "new", planted, id="20250103-b", created="2025-01-03T00:00:00")
    create_scan(tmp_path / "scan", header).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / ".half.0badcafe.partial").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "readme.txt").write_text("")
    return tmp_path


def test_runs_are_listed_newest_first_and_broken_ones_last_with_the_reason(shelf):
    entries = list_runs(shelf)
    assert [(entry.id, entry.kind, entry.state) for entry in entries] == [
        ("20250103-b", "run", "complete"),
        ("20250102-000000-beef", "scan", "unfinished"),
        ("20250101-a", "run", "complete"),
        (".half.0badcafe.partial", "run", "broken"),
        ("broken", "run", "broken"),
    ]
    assert [entry.reason.split(";")[0] for entry in entries[1::2]] == [
        "4 of 4 parts to measure",
        "left by a process that was killed while saving, unless one saves right now",
    ]
    assert "run.json is not whole JSON" in entries[4].reason


def test_an_entry_tells_model_grades_points_and_size(shelf):
    entry = find_run(shelf, "20250101-a")
    size = sum(path.stat().st_size for path in (shelf / "old").rglob("*") if path.is_file())
    assert entry == RunEntry(
        id="20250101-a",
        path=shelf / "old",
        kind="run",
        state="complete",
        bytes=size,
        created="2025-01-01T10:00:00+02:00",
        title="planted example, not a measurement",
        model="simulated:planted",
        simulated=True,
        points=1,
        grades={"short": 1},
    )


def test_a_finished_scan_tells_how_many_points_carry_each_grade(tmp_path, planted, header):
    with create_scan(tmp_path / "scan", header) as scan:
        for part in scan.pending_parts():
            scan.save_part(part, planted(rounds=1, first_round=part.round))
        scan.finish([{"grade": "sound"}, {"grade": "void"}])
    (entry,) = list_runs(tmp_path)
    assert (entry.state, entry.points, entry.grades, entry.reason) == ("complete", 2, {"sound": 1, "void": 1}, "")
    assert entry.model == "simulated:planted"


def test_the_folder_of_a_run_or_scan_lists_itself(shelf):
    assert [entry.id for entry in list_runs(shelf / "scan")] == ["20250102-000000-beef"]
    assert [entry.id for entry in list_runs(shelf / "old")] == ["20250101-a"]


def test_an_empty_folder_lists_nothing_and_an_absent_one_is_an_error(tmp_path):
    assert list_runs(tmp_path) == []
    with pytest.raises(ConfigError, match="is no folder"):
        list_runs(tmp_path / "absent")


def test_a_run_is_found_by_id_folder_name_or_unique_prefix(shelf):
    assert find_run(shelf, "20250103-b").path == shelf / "new"
    assert find_run(shelf, "old").id == "20250101-a"
    assert find_run(shelf, "20250102").path == shelf / "scan"
    with pytest.raises(ConfigError, match=r"3 runs in .* match '2025010'; take one of: 20250103-b, 2025"):
        find_run(shelf, "2025010")
    with pytest.raises(ConfigError, match=r"no run in .* matches 'x'; take one of: 20250103-b"):
        find_run(shelf, "x")
    with pytest.raises(ConfigError, match=r"no run in .* matches ''"):
        find_run(shelf, "")
