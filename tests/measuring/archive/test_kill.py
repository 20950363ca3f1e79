"""Does a SIGKILL at any instant lose at most what was being written?"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import perfkit
from perfkit import children
from perfkit.measuring.archive.durable import is_torn, remove_torn
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.scanfolder import open_scan
from perfkit.measuring.archive.storedscan import load_scan

WRITER = Path(__file__).with_name("killed_writer.py")
LONGEST_LIFE_S = 0.1
MOST_KILLS_IN_FINISH = 2
PATIENCE = 10  # how many times the trials until a kill has fallen into a save
TRIALS = [15, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]


class Victims:
    """Starts writers one after the other and kills each after a while."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert self._line() == "ready"

    def _line(self) -> str:
        return self._process.stdout.readline().decode().strip()

    def kill_one(self, kind: str, folder: Path, after_s: float | None) -> list[str]:
        """What a writer announced before it was killed: after a while, or when it had finished."""
        self._process.stdin.write(f"{kind} {folder}\n".encode())
        self._process.stdin.flush()
        pid = int(self._line().removeprefix("pid "))
        lines = list(iter(self._line, "finished")) if after_s is None else []
        threading.Event().wait(after_s or 0)
        os.kill(pid, signal.SIGKILL)
        return lines + list(iter(self._line, "dead"))


@pytest.fixture
def victims():
    path = f"{Path(perfkit.__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = children.spawn(
        [sys.executable, str(WRITER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    )
    yield Victims(process)
    process.stdin.close()
    process.stdout.close()
    children.stop(process)


def folders_in(parent: Path) -> tuple[set[str], set[str]]:
    """The names of the saved runs, and of the torn ones."""
    paths = list(parent.iterdir()) if parent.is_dir() else []
    return {path.name for path in paths if not is_torn(path)}, {path.name for path in paths if is_torn(path)}


@pytest.mark.parametrize("trials", TRIALS)
def test_a_kill_while_saving_runs_loses_at_most_the_one_being_saved(tmp_path, victims, trials):
    chance, torn_count = random.Random(trials), 0
    for trial in range(PATIENCE * trials):
        if trial >= trials and torn_count:
            break
        parent = tmp_path / f"trial-{trial}"
        lines = victims.kill_one("runs", parent, chance.uniform(0, LONGEST_LIFE_S))
        announced = {line.removeprefix("saved ") for line in lines}
        saved, torn = folders_in(parent)
        assert announced <= saved
        assert len(saved - announced) + len(torn) <= 1
        assert [verify_run(parent / name) for name in sorted(saved)] == [[]] * len(saved)
        assert set(remove_torn(parent)) == torn
        assert folders_in(parent) == (saved, set())
        torn_count += len(torn)
    assert torn_count > 0  # else no kill fell into a save, and nothing was shown


class KilledScan:
    """A scan that is killed again and again, and what it announced over all its lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[str] = []
        self.lives = 0
        self.lives_in_finish = 0
        self.torn_count = 0

    def live(self, victims: Victims, after_s: float | None) -> bool:
        """One life; returns whether the scan was finished in it."""
        lines = victims.kill_one("scan", self.folder, after_s)
        self.lives += 1
        self.torn_count += len(folders_in(self.folder / "rounds")[1])
        if not (self.folder / "scan.json").exists():
            assert lines == []
            return False
        scan = load_scan(self.folder)
        done = {part.folder_name for part in scan.done_parts()}
        self.started += [line.removeprefix("started ") for line in lines if line.startswith("started ")]
        assert {line.removeprefix("saved ") for line in lines if line.startswith("saved ")} <= done
        assert done <= set(self.started)
        assert len(self.started) <= len(done) + self.lives
        self.lives_in_finish += not scan.pending_parts()
        return scan.is_finished


@pytest.mark.parametrize("trials", TRIALS)
def test_a_scan_killed_again_and_again_redoes_at_most_the_running_part_each_time(tmp_path, victims, trials):
    chance = random.Random(trials)
    scans = [KilledScan(tmp_path / "scan-0")]
    for trial in range(PATIENCE * trials):
        torn_count = sum(scan.torn_count for scan in scans)
        if trial >= trials and torn_count and len(scans) > 1:
            break
        # However slow the disk is, every scan gets a life that is long enough in the end.
        is_last = (trial >= trials - 1 and torn_count > 0) or scans[-1].lives_in_finish >= MOST_KILLS_IN_FINISH
        if scans[-1].live(victims, None if is_last else chance.uniform(0, LONGEST_LIFE_S)):
            assert_finished_whole(scans[-1].folder)
            scans.append(KilledScan(tmp_path / f"scan-{len(scans)}"))
    assert (torn_count > 0, len(scans) > 1) == (True, True)


def assert_finished_whole(folder: Path) -> None:
    """Every point has every round's rows once, and what a kill left behind goes when the scan is opened."""
    open_scan(folder, None).close()
    assert sorted(os.listdir(folder)) == ["points", "scan.json", "scan.lock"]
    scan = load_scan(folder)
    points, order = scan.header.plan["points"], scan.header.plan["order"]
    for index in range(len(points)):
        run = scan.run(index)
        assert verify_run(run.path) == []
        assert run.table("requests").groupby("round").size().to_list() == [900] * len(order)
