"""Is the list with an index always the list without one, and does the index spare the reading?"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.measuring.archive import entries, runs
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.archive.format import INDEX_NAME
from perfkit.measuring.archive.index import read_index
from perfkit.measuring.archive.pins import pin, unpin
from perfkit.measuring.archive.runs import find_run, list_runs
from perfkit.measuring.archive.scanfolder import create_scan


def save(folder, planted, **changes):
    contents = planted(rounds=1)
    manifest = dataclasses.replace(contents.manifest, **changes)
    return save_run(folder, dataclasses.replace(contents, manifest=manifest))


@pytest.fixture
def shelf(tmp_path, planted, header):
    """A folder with two runs, an unfinished scan, a broken folder, and a demo with a run in it."""
    save(tmp_path / "old", planted, id="20250101-a", created="2025-01-01T00:00:00+00:00")
    save(tmp_path / "new", planted, id="20250103-b", created="2025-01-03T00:00:00+00:00", source={"commit": "abc"})
    create_scan(tmp_path / "scan", header).close()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "demo.json").write_text("{}")
    save(tmp_path / "demo" / "stacks", planted, id="20250104-c", created="2025-01-04T00:00:00+00:00")
    return tmp_path


@pytest.fixture
def reads(monkeypatch):
    """The names of the folders that were really read."""
    names = []

    def read_entry(path):
        entry = entries.read_entry(path)
        if entry is not None:
            names.append(path.name)
        return entry

    monkeypatch.setattr(runs, "read_entry", read_entry)
    return names


def test_the_list_is_the_same_with_and_without_an_index_and_includes_a_demos_runs(shelf):
    plain = list_runs(shelf)
    assert [entry.path.name for entry in plain] == ["stacks", "new", "scan", "old", "broken"]
    assert [list_runs(shelf, remember=True) for _ in range(3)] == [plain] * 3
    assert sorted(read_index(shelf)) == ["demo/stacks", "new", "old", "scan"]


def test_only_what_changed_is_read_again(shelf, planted, header, reads):
    list_runs(shelf, remember=True)
    reads.clear()
    list_runs(shelf, remember=True)
    assert reads == ["broken"]
    reads.clear()
    save(shelf / "newest", planted, id="20250105-d", created="2025-01-05T00:00:00+00:00")
    shutil.rmtree(shelf / "old")
    entries_now = list_runs(shelf, remember=True)
    assert sorted(reads) == ["broken", "newest"]
    assert entries_now == list_runs(shelf)
    assert "old" not in read_index(shelf)


def test_a_part_that_a_scan_saves_and_a_pin_are_seen_at_once(shelf, planted, header):
    assert find_run(shelf, "scan").reason.startswith("4 of 4 parts")
    with runs_writer(shelf / "scan") as scan:
        part = scan.pending_parts()[0]
        scan.save_part(part, planted(rounds=1, first_round=part.round))
    assert find_run(shelf, "scan").reason.startswith("3 of 4 parts")
    pin(shelf / "old", " the baseline\nof main ")
    assert find_run(shelf, "old").pinned == "the baseline of main"
    unpin(shelf / "old")
    assert find_run(shelf, "old").pinned == ""


def runs_writer(folder):
    from perfkit.measuring.archive.scanfolder import open_scan

    return open_scan(folder, None)


@pytest.mark.parametrize(
    "damage",
    [
        lambda index: index.write_bytes(b"no database at all, but long enough to be taken for one" * 100),
        lambda index: index.write_bytes(index.read_bytes()[:5000] + b"\xff" * 3000),
        lambda index: index.write_bytes(index.read_bytes()[:100]),
        lambda index: index.write_bytes(b""),
        lambda index: sql(index, "DROP TABLE runs"),
        lambda index: sql(index, "PRAGMA user_version = 99"),
        lambda index: sql(index, "UPDATE runs SET stamp = 'of another time', model = 'wrong'"),
        lambda index: sql(index, "UPDATE runs SET grades = 'no json', stamp = stamp"),
        lambda index: sql(index, "INSERT INTO runs SELECT 'never/was', " + rest(index) + " FROM runs LIMIT 1"),
    ],
)
def test_a_damaged_or_foreign_index_is_put_right_by_the_next_list(shelf, damage):
    plain = list_runs(shelf)
    list_runs(shelf, remember=True)
    for suffix in ("-wal", "-shm"):
        (shelf / f"{INDEX_NAME}{suffix}").unlink(missing_ok=True)
    damage(shelf / INDEX_NAME)
    assert list_runs(shelf, remember=True) == plain
    assert list_runs(shelf, remember=True) == plain
    assert sorted(read_index(shelf)) == ["demo/stacks", "new", "old", "scan"]


def rest(index):
    connection = sqlite3.connect(index)
    names = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
    connection.close()
    return ", ".join(f'"{name}"' for name in names[1:])


def sql(index, statement):
    connection = sqlite3.connect(index)
    connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_an_index_that_cannot_be_written_only_costs_time(shelf, monkeypatch):
    plain = list_runs(shelf)
    (shelf / INDEX_NAME).mkdir()
    assert list_runs(shelf, remember=True) == plain
    (shelf / INDEX_NAME).rmdir()
    elsewhere = shelf.parent / f"{shelf.name}-elsewhere.txt"
    elsewhere.write_text("")
    (shelf / INDEX_NAME).symlink_to(elsewhere)
    assert list_runs(shelf, remember=True) == plain
    assert elsewhere.read_text() == ""


def test_a_locked_index_is_done_without(shelf, monkeypatch):
    monkeypatch.setattr("perfkit.measuring.archive.index._LOCKED_S", 0.0)
    list_runs(shelf, remember=True)
    pin(shelf / "old")
    holder = sqlite3.connect(shelf / INDEX_NAME, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert list_runs(shelf, remember=True) == list_runs(shelf)
    holder.execute("ROLLBACK")
    holder.close()
    list_runs(shelf, remember=True)
    assert read_index(shelf)["old"].entry.pinned == "pinned"


LISTER = (
    "import os, sys; from pathlib import Path; from perfkit.measuring.archive.runs import list_runs\n"
    "folder = Path(sys.argv[1])\n"
    "for number in range(int(sys.argv[2])):\n"
    "    print(len(list_runs(folder, remember=True)), flush=True)\n"
    "    os.utime(folder / f'run-{number % 40:02d}')\n"
)


def lister(folder, times):
    where = str(Path(perfkit.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": f"{where}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", LISTER, str(folder), str(times)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def many_runs(folder, planted, count=40):
    first = save(folder / "run-00", planted)
    for number in range(1, count):
        shutil.copytree(first, folder / f"run-{number:02d}")


def test_several_processes_may_list_at_once(tmp_path, planted):
    many_runs(tmp_path, planted)
    processes = [lister(tmp_path, 15) for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs == [["40"] * 15] * 3
    assert list_runs(tmp_path, remember=True) == list_runs(tmp_path)


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_a_kill_while_the_index_is_written_costs_at_most_a_reading(tmp_path, planted, kills):
    many_runs(tmp_path, planted)
    plain = list_runs(tmp_path)
    for number in range(kills):
        process = lister(tmp_path, 10_000)
        for _ in range(1 + number % 7):
            process.stdout.readline()
        process.kill()
        process.communicate()
        check = sqlite3.connect(tmp_path / INDEX_NAME)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()
        assert list_runs(tmp_path, remember=True) == plain
