"""Does only what is old, whole, unpinned and really a run leave the archive?"""

from __future__ import annotations

import dataclasses
import os
import shutil
from datetime import UTC, datetime

import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.folder import save_run, verify_run
from perfkit.measuring.archive.pins import pin
from perfkit.measuring.archive.pruning import judge_runs, remove_run
from perfkit.measuring.archive.runs import list_runs
from perfkit.measuring.archive.scanfolder import create_scan, open_scan


def save(folder, planted, day):
    contents = planted(rounds=1)
    manifest = dataclasses.replace(contents.manifest, id=f"2025010{day}-x", created=f"2025-01-0{day}T00:00:00+00:00")
    return save_run(folder, dataclasses.replace(contents, manifest=manifest))


@pytest.fixture
def shelf(tmp_path, planted, header):
    """Runs of five days, the second pinned; an unfinished scan, a broken folder, a demo's run, and no run."""
    for day in range(1, 6):
        save(tmp_path / f"day-{day}", planted, day)
    pin(tmp_path / "day-2", "baseline")
    create_scan(tmp_path / "scan", header).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "demo.json").write_text("{}")
    save(tmp_path / "demo" / "stacks", planted, 1)
    (tmp_path / "notes").mkdir()
    return tmp_path


def going(shelf, keep=None, before=None):
    return [one.entry.path.name for one in judge_runs(list_runs(shelf), keep, before) if one.goes]


def test_the_newest_stay_and_so_does_what_is_young_enough(shelf):
    fourth = datetime(2025, 1, 4, tzinfo=UTC)
    assert going(shelf, keep=2) == ["day-3", "day-1"]
    assert going(shelf, keep=0) == ["day-5", "day-4", "day-3", "day-1"]
    assert going(shelf, before=fourth) == ["day-3", "day-1"]
    assert going(shelf, keep=3, before=fourth) == ["day-1"]
    assert going(shelf, keep=9) == []


def test_each_that_stays_says_why(shelf):
    verdicts = judge_runs(list_runs(shelf), 1, None)
    assert {one.entry.path.name: one.why.split(";")[0] for one in verdicts} == {
        "day-5": "among the newest 1",
        "day-4": "old enough to go",
        "day-3": "old enough to go",
        "day-2": "pinned: baseline",
        "day-1": "old enough to go",
        "scan": "unfinished: go on with --resume, or remove it by hand",
        "stacks": f"part of the demo in {shelf / 'demo'}",
        "broken": "broken: remove it by hand",
    }


def test_nothing_goes_unless_something_says_what_may(shelf):
    with pytest.raises(ConfigError, match="nothing says what may go; give --keep N, --older-than AGE"):
        judge_runs(list_runs(shelf), None, None)
    with pytest.raises(ConfigError, match="--keep is -1; give 0 or more"):
        judge_runs(list_runs(shelf), -1, None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("notes", "is no run, scan or comparison"),
        ("absent", "is no run, scan or comparison"),
        ("broken", "is broken"),
        ("scan", "is unfinished"),
        ("day-2", r"is pinned \(baseline\); perfkit runs unpin 20250102-x first"),
        ("link", "is a link"),
    ],
)
def test_what_is_no_whole_unpinned_run_is_refused_and_stays(shelf, name, words):
    (shelf / "link").symlink_to(shelf / "day-1")
    before = sorted(os.listdir(shelf))
    with pytest.raises(ArchiveError, match=words):
        remove_run(shelf / name)
    assert sorted(os.listdir(shelf)) == before
    assert verify_run(shelf / "day-1") == []


def test_a_removed_run_is_gone_and_its_neighbours_are_whole(shelf):
    remove_run(shelf / "day-1")
    assert not (shelf / "day-1").exists()
    assert [verify_run(shelf / f"day-{day}") for day in range(2, 6)] == [[]] * 4
    assert [name for name in os.listdir(shelf) if name.startswith(".")] == []


def test_a_removal_that_is_cut_short_leaves_no_half_run(shelf, monkeypatch):
    def kill(_path):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", kill)
    with pytest.raises(KeyboardInterrupt):
        remove_run(shelf / "day-1")
    (torn,) = [path for path in shelf.iterdir() if durable.is_torn(path)]
    assert not (shelf / "day-1").exists()
    assert [entry.state for entry in list_runs(shelf) if entry.path == torn] == ["broken"]


def test_a_scan_that_somebody_writes_stays(tmp_path, planted, header):
    with create_scan(tmp_path / "scan", header) as scan:
        for part in scan.pending_parts():
            scan.save_part(part, planted(rounds=1, first_round=part.round))
        scan.finish([{"grade": "sound"}, {"grade": "sound"}])
    with open_scan(tmp_path / "scan", None), pytest.raises(ArchiveError, match="another process writes"):
        remove_run(tmp_path / "scan")
    remove_run(tmp_path / "scan")
    assert os.listdir(tmp_path) == []
