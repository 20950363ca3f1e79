"""Is a scan complete, interleaved, pooled, on disk part by part, and able to go on?"""

import dataclasses
import errno
import os

import pandas as pd
import pytest

from perfkit.errors import ArchiveError, ConfigError, TargetFailed
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.folder import verify_run
from perfkit.measuring.archive.storedscan import load_scan
from perfkit.measuring.experiment import record
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.phase import Plan, Progress, find_payloads
from perfkit.measuring.scanning import grid as scanning
from perfkit.measuring.scanning.grid import Scan, open_scan_results, run_scan, scan
from perfkit.measuring.scanning.host import Given, Launched
from perfkit.measuring.scanning.plan import Axis, ScanPlan, find_field, grid
from perfkit.measuring.service import attach, launch
from perfkit.settings.server import ServerSettings

NOOP = ServerSettings(model="noop")
LOAD = ClosedLoop(concurrency=2)


def plan_of(load=LOAD, settings=NOOP, rounds=1, seconds=0.1, seed=0, **values):
    axes = {name: Axis(name=find_field(name, load), values=chosen) for name, chosen in values.items()}
    return ScanPlan(points=grid(settings, load, axes), seconds=seconds * rounds, rounds=rounds, seed=seed)


@pytest.fixture(scope="module")
def recorded(server):
    """What one part recorded."""
    return record(server, Plan(load=LOAD, seconds=0.1, payloads=find_payloads(server, LOAD), round_index=0), [])


@pytest.fixture
def quick(server, recorded, monkeypatch, tmp_path):
    """A host whose parts take no time: each is the same recording, shown to the watcher once while it goes on."""

    def replay(service, plan, collectors, watch):
        watch(Progress(elapsed_s=0.1, total_s=0.5, samples=tmp_path, stats=None))
        return recorded

    monkeypatch.setattr(scanning, "record", replay)
    return Given(server)


@pytest.fixture(scope="module")
def seen():
    """What the watcher of the scan below was shown."""
    return []


@pytest.fixture(scope="module")
def scanned(tmp_path_factory, seen):
    """Two numbers of workers in two rounds, the larger first."""
    with Launched() as host:
        folder = tmp_path_factory.mktemp("scans") / "scan"
        return run_scan(plan_of(workers=(2, 1), rounds=2), host, folder, seen.append)


def test_points_come_in_the_order_given_each_with_its_settings(scanned):
    assert [point["varied"] for point in scanned.points] == [{"workers": 2}, {"workers": 1}]
    assert [point["settings"]["workers"] for point in scanned.points] == [2, 1]
    assert all(point["load"]["concurrency"] == 2 for point in scanned.points)


def test_the_rounds_of_a_point_are_pooled_and_every_request_is_there_once(scanned):
    for index in range(2):
        run = scanned.run(index)
        requests, manifest = run.table("requests"), run.stored.manifest
        assert sorted(set(requests["round"])) == [0, 1]
        assert not requests.duplicated(["round", "request_id"]).any()
        assert len(requests) == sum(report["scheduled"] for report in manifest.generator_reports)
        assert [phase["index"] for phase in manifest.rounds] == [0, 1]
        assert verify_run(run.folder) == []
        assert dict(run.point) == dict(scanned.points[index])


def test_rounds_are_interleaved_in_the_order_of_the_plan(scanned):
    started = {
        (phase["index"], index): phase["started_ns"]
        for index in range(2)
        for phase in scanned.run(index).stored.manifest.rounds
    }
    planned = [
        (number, point) for number, order in enumerate(plan_of(workers=(2, 1), rounds=2).order) for point in order
    ]
    assert sorted(started, key=started.get) == planned


def test_a_watcher_sees_every_part_begin_and_go_on(scanned, seen):
    begun = [(progress.part, progress.parts) for progress in seen if progress.live is None]
    assert begun == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert {progress.part for progress in seen if progress.live} == {0, 1, 2, 3}
    assert {progress.part_seconds for progress in seen} == {0.1}
    assert [progress.varied for progress in seen if progress.live is None][:1] == [
        scanned.points[plan_of(workers=(2, 1), rounds=2).order[0][0]]["varied"]
    ]


def test_a_point_is_had_by_the_value_of_the_varied_setting(scanned):
    assert scanned[2].point["varied"] == {"workers": 2}
    assert scanned[(1,)].point["varied"] == {"workers": 1}
    with pytest.raises(KeyError, match=r"no point at 3; measured: \[2\], \[1\]"):
        scanned[3]


def test_the_document_of_a_scan_has_the_promised_fields(scanned):
    document = scanned.to_json()
    assert set(document) == {"schema", "simulated", "points", "knee", "knee_estimates", "fits", "best", "folder"}
    assert list(document)[:2] == ["schema", "simulated"]
    assert (document["schema"], document["simulated"], document["knee"]) == (1, False, None)
    assert document["points"] == scanned.points
    assert document["best"] is None or set(document["best"]) >= {"settings", "reason", "basis"}


def test_a_scan_says_what_it_can_about_scaling_and_why_not_the_rest(scanned):
    found = scanned.scaling(p99_s=9.0)
    assert found.usl.reason == "workers is no number of users; vary load.concurrency in a closed loop"
    assert [one.refusal is not None for one in found.knee_estimates] == [True] * 4
    assert scanned.fits == scanned.scaling().to_json()
    assert scanned.to_json(p99_s=9.0)["best"] == scanned.best(9.0)


def test_a_scan_from_before_the_fits_has_them_too(scanned):
    header = scanned.stored.header
    older = dataclasses.replace(header, summary={"knee": None, "best": None})
    again = Scan(stored=dataclasses.replace(scanned.stored, header=older))
    assert again.fits == scanned.fits


def test_a_finished_scan_is_read_back_as_it_was_and_its_parts_are_gone(scanned):
    assert open_scan_results(scanned.folder).to_json() == scanned.to_json()
    assert sorted(os.listdir(scanned.folder)) == ["points", "scan.json", "scan.lock"]


def test_a_finished_scan_is_resumed_by_doing_nothing(scanned):
    class Nobody:
        def at(self, settings):
            raise AssertionError("nothing is left to measure")

    again = run_scan(plan_of(workers=(2, 1), rounds=2), Nobody(), scanned.folder, resume=True)
    assert again.to_json() == scanned.to_json()


def test_fields_of_the_load_are_varied_as_settings_are(server, tmp_path, payloads):
    plan = plan_of(settings=server.settings, keep_alive=(False,), payloads=(payloads, "numbers/noop.jsonl"))
    result = run_scan(plan, Given(server), tmp_path / "scan")
    loads = [(point["load"]["keep_alive"], point["load"]["payloads"]) for point in result.points]
    assert loads == [tuple(point["varied"].values()) for point in result.points]
    ours, theirs = (set(result[False, name].table("requests")["payload"]) for name in (payloads, "numbers/noop.jsonl"))
    assert max(ours) == 1 < max(theirs)


def test_the_load_of_a_foreign_service_is_scanned(foreign, payloads, tmp_path):
    plan = plan_of(load=ClosedLoop(payloads=payloads), settings=None, concurrency=(2,))
    result = run_scan(plan, Given(attach(foreign.url)), tmp_path / "scan")
    assert [(point["load"]["concurrency"], point["settings"]) for point in result.points] == [(2, {})]


def test_from_python_a_setting_of_a_running_service_is_scanned_and_put_back(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = server.settings
    result = scan(server, "workers", [3], load=OpenLoop(rate_rps=100.0), seconds=0.2)
    assert server.settings == before
    assert [point["varied"] for point in result.points] == [{"workers": 3}]
    assert result.folder.parent == tmp_path.relative_to(tmp_path) / "perfkit-runs"


class Interruption:
    """A watcher that is interrupted in the middle of a part."""

    def __init__(self, part):
        self._part = part

    def __call__(self, progress):
        if progress.part == self._part and progress.live is not None:
            raise KeyboardInterrupt


def saved_requests(folder):
    """The sent instants of every part on the disk."""
    parts = sorted((folder / "rounds").iterdir())
    return {part.name: pd.read_parquet(part / "requests.parquet")["scheduled_ns"].to_list() for part in parts}


def test_an_interrupted_scan_goes_on_where_it_was_and_measures_nothing_twice(quick, tmp_path):
    plan, folder = plan_of(workers=(1, 2), rounds=2), tmp_path / "scan"
    with pytest.raises(KeyboardInterrupt):
        run_scan(plan, quick, folder, Interruption(2))
    finished = saved_requests(folder)
    assert len(finished) == 2
    seen = []
    run_scan(plan, quick, folder, seen.append, resume=True)
    assert [progress.part for progress in seen if progress.live is None] == [2, 3]
    assert load_scan(folder).header.resumes == 1
    assert load_scan(folder).header.plan == plan.to_json()


def test_another_plan_is_not_resumed_and_the_difference_is_named(quick, tmp_path):
    folder = tmp_path / "scan"
    with pytest.raises(KeyboardInterrupt):
        run_scan(plan_of(workers=(1, 2)), quick, folder, Interruption(0))
    other = plan_of(workers=(1, 3))
    with pytest.raises(ConfigError, match=r"another plan: points\[1\]\.settings\.workers is 3, there 2"):
        run_scan(other, quick, folder, resume=True)
    with pytest.raises(
        ConfigError, match=r"holds scan\.json already; go on with it by --resume, or choose another --out"
    ):
        run_scan(other, quick, folder)


def test_nothing_is_resumed_where_no_scan_is(quick, tmp_path):
    with pytest.raises(ConfigError, match="holds no scan to resume"):
        run_scan(plan_of(workers=(1,)), quick, tmp_path / "nothing", resume=True)


def test_two_scans_at_once_cannot_share_a_folder(quick, tmp_path):
    plan, folder = plan_of(workers=(1,)), tmp_path / "scan"
    refusals = []

    def intrude(progress):
        if progress.live is None:
            for resume in (False, True):
                with pytest.raises(ArchiveError) as refusal:
                    run_scan(plan, quick, folder, resume=resume)
                refusals.append(str(refusal.value))

    run_scan(plan, quick, folder, intrude)
    assert refusals == [f"another process writes the scan in {folder}; wait for it, or choose another --out"] * 2


def test_a_full_disk_ends_the_scan_and_what_was_saved_stays_and_can_be_gone_on_with(quick, tmp_path, monkeypatch):
    plan, folder = plan_of(workers=(1, 2)), tmp_path / "scan"
    real, saves = durable._sync_tree, []

    def full(path):
        saves.append(path)
        if len(saves) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path)

    monkeypatch.setattr(durable, "_sync_tree", full)
    with pytest.raises(ArchiveError, match=r"^the disk is full: .* make room, or choose another disk with --out"):
        run_scan(plan, quick, folder)
    parts = list((folder / "rounds").iterdir())
    assert [verify_run(part) for part in parts] == [[]]
    assert len(run_scan(plan, quick, folder, resume=True).points) == 2


def test_a_service_that_dies_leaves_the_finished_parts(tmp_path):
    with launch(NOOP) as service:

        def kill(progress):
            if progress.part == 1 and progress.live is not None:
                os.kill(service.pid, 9)

        with pytest.raises(TargetFailed, match=r"^the service ended with exit code -9"):
            run_scan(plan_of(workers=(1, 2)), Given(service), tmp_path / "scan", kill)
    assert len(saved_requests(tmp_path / "scan")) == 1
