"""Does a power cut between any two operations leave every part whole that was said to be saved?"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path

import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.scanfolder import create_scan, open_scan
from perfkit.measuring.archive.storedscan import ScanHeader, load_scan

POWER = runpy.run_path(str(Path(__file__).with_name("power_cut.py")))
POINTS, ROUNDS = 2, 2
PLAN = {"points": [{"settings": {"workers": 1}}, {"settings": {"workers": 2}}], "order": [[0, 1]] * ROUNDS}
LEAST_STATES = 500


@pytest.fixture
def place(tmp_path):
    """A folder in memory where there is one: what is tested here is made anew some hundred times."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="perfkit-") as folder:
        yield Path(folder)


def work(scan, contents, saved):
    for part in scan.pending_parts():
        scan.save_part(part, contents[part.round])
        saved.append(part.folder_name)
    if not scan.stored.is_finished:
        scan.finish([{"grade": "sound"}] * POINTS)
    saved.append("finished")


def record(folder, planted, monkeypatch):
    """Every cut while a scan is created, measured and finished."""
    contents = [planted(rounds=1, first_round=index) for index in range(ROUNDS)]
    header = ScanHeader(id="planted", created="2025-01-02T00:00:00+00:00", simulated=True, plan=PLAN)
    saved = []
    with monkeypatch.context() as patch:
        recorder = POWER["Recorder"](folder, saved, patch)
        with create_scan(folder, header) as scan:
            saved.append("created")
            work(scan, contents, saved)
        recorder.cut_at_the_end()
    return recorder.cuts, contents


def problems(folder, saved):
    """What was said to be saved and is not whole any more."""
    if not saved:
        return []
    try:
        scan = load_scan(folder)
    except ArchiveError as error:
        return [str(error)]
    if scan.is_finished:
        return [problem for point in range(POINTS) for problem in verify_run(scan.point_folder(point))]
    done = {part.folder_name: scan.part_folder(part) for part in scan.done_parts()}
    missing = [name for name in saved if name not in {*done, "created"}]
    return missing + [problem for path in done.values() for problem in verify_run(path)]


def states(cuts, chances):
    for number, cut in enumerate(cuts):
        for survives in POWER["ways"](cut, number, chances):
            yield cut, survives


@pytest.mark.parametrize("chances", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_every_state_that_a_power_cut_may_leave_holds_what_was_said_to_be_saved(place, planted, monkeypatch, chances):
    cuts, contents = record(place / "scan", planted, monkeypatch)
    count = 0
    for number, (cut, survives) in enumerate(states(cuts, chances)):
        folder = place / f"state-{number}"
        cut.restore(folder, survives)
        assert (number, cut.saved, problems(folder, cut.saved)) == (number, cut.saved, [])
        if cut.saved and number % 40 == 0:
            with open_scan(folder, PLAN) as scan:
                work(scan, contents, [])
            assert sorted(os.listdir(folder)) == ["points", "scan.json", "scan.lock"]
            assert [len(load_scan(folder).run(point).table("requests")) for point in range(POINTS)] == [6, 6]
        durable.remove(folder)
        count += 1
    print(f"\n{len(cuts)} operations, {count} states: nothing lost")
    assert count == len(cuts) * (2 + chances)
    assert count >= LEAST_STATES or not chances


@pytest.mark.parametrize("forgotten", ["files", "folders"])
def test_a_save_that_forgets_to_sync_is_found(place, planted, monkeypatch, forgotten):
    sync = durable.sync

    def forget(path):
        if path.is_dir() != (forgotten == "folders"):
            sync(path)

    monkeypatch.setattr(durable, "sync", forget)
    cuts, _ = record(place / "scan", planted, monkeypatch)
    found = []
    for number, (cut, survives) in enumerate(states(cuts, chances=0)):
        folder = place / f"state-{number}"
        cut.restore(folder, survives)
        found += problems(folder, cut.saved)
        durable.remove(folder)
    assert found != []
