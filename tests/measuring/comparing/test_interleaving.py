"""Is a comparison measured in fresh processes, saved pair by pair, and able to go on?"""

import errno
import os

import pytest

from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.folder import load_run, verify_run
from perfkit.measuring.archive.storedcomparison import load_comparison
from perfkit.measuring.comparing import interleaving
from perfkit.measuring.comparing.interleaving import SAME, compare, open_comparison, run_comparison
from perfkit.settings.server import ServerSettings


def test_runs_come_in_the_order_of_the_plan_each_saved_whole_under_its_side(plan_of, replayed, tmp_path):
    plan = plan_of(pairs=3)
    found = run_comparison(plan, tmp_path / "it")
    assert replayed == [(plan.side(turn.arm).label, turn.pair) for turn in plan.order]
    assert sorted(os.listdir(tmp_path / "it")) == ["a", "b", "comparison.json", "comparison.lock"]
    for arm, workers in (("a", 1), ("b", 2)):
        folders = [tmp_path / "it" / arm / f"{pair:03d}" for pair in range(3)]
        assert [verify_run(folder) for folder in folders] == [[]] * 3
        assert {load_run(folder).manifest.settings["workers"] for folder in folders} == {workers}
        assert load_run(folders[0]).manifest.varied == {"side": f"workers={workers}"}
    assert (found.verdict, found.labels, found.simulated) == ("inconclusive", ("workers=1", "workers=2"), False)


def test_an_interrupted_comparison_loses_the_running_pair_and_goes_on(plan_of, replayed, tmp_path, monkeypatch):
    replay, folder, plan = interleaving.measure_replicate, tmp_path / "it", plan_of(pairs=4)

    def interrupted(side, pair, seconds, report):
        if len(replayed) == 5:
            raise KeyboardInterrupt
        return replay(side, pair, seconds, report)

    monkeypatch.setattr(interleaving, "measure_replicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_comparison(plan, folder)
    assert load_comparison(folder).done_pairs() == (0, 1)
    assert open_comparison(folder).notes == ("2 of 4 pairs are measured; go on with --resume",)
    monkeypatch.setattr(interleaving, "measure_replicate", replay)
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.glob("?/*/run.json"))}
    done = run_comparison(plan, folder, resume=True)
    assert [pair for _, pair in replayed[5:]] == [2, 2, 3, 3]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (len(done.runs_a), done.notes) == (4, ())


def test_half_a_pair_on_the_disk_is_measured_again(plan_of, replayed, tmp_path):
    plan, folder = plan_of(pairs=2), tmp_path / "it"
    run_comparison(plan, folder)
    durable.remove(folder / "b" / "001")
    assert load_comparison(folder).done_pairs() == (0,)
    assert len(run_comparison(plan, folder, resume=True).runs_b) == 2
    assert [pair for _, pair in replayed[4:]] == [1, 1]


def test_a_full_disk_ends_the_comparison_and_whole_pairs_stay(plan_of, replayed, tmp_path, monkeypatch):
    real, saves = durable._sync_tree, []

    def full(path):
        saves.append(path)
        if len(saves) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path)

    monkeypatch.setattr(durable, "_sync_tree", full)
    with pytest.raises(ArchiveError, match="the disk is full"):
        run_comparison(plan_of(pairs=2), tmp_path / "it")
    assert load_comparison(tmp_path / "it").done_pairs() == (0,)


def test_results_are_never_written_over_nor_mixed_with_another_plan(plan_of, replayed, tmp_path):
    folder = tmp_path / "it"
    run_comparison(plan_of(pairs=2), folder)
    with pytest.raises(ConfigError, match="go on with it by --resume"):
        run_comparison(plan_of(pairs=2), folder)
    with pytest.raises(ConfigError, match=r"another plan: b\.label is 'workers=3', there 'workers=2'"):
        run_comparison(plan_of(pairs=2, workers=3), folder, resume=True)
    with pytest.raises(ConfigError, match="holds no comparison to resume"):
        run_comparison(plan_of(pairs=2), tmp_path / "nothing", resume=True)


def test_a_setting_against_itself_is_said_to_be_that(plan_of, replayed, tmp_path):
    assert run_comparison(plan_of(pairs=1, workers=1), tmp_path / "it").notes == (SAME,)


def test_from_python_settings_are_compared_and_named_by_what_differs(replayed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = compare(ServerSettings(model="noop"), ServerSettings(model="noop", workers=2), pairs=8, seconds=0.2)
    assert found.labels == ("workers=1", "workers=2")
    assert repr(found).splitlines()[0] == found.claim
    assert found.verdict == "no difference"  # all runs are one recording
    with pytest.raises(ConfigError, match="settings on both sides, or folders of runs"):
        compare(ServerSettings(model="noop"), tmp_path)


def test_the_sides_of_one_comparison_are_compared_in_pairs_again(replayed, plan_of, tmp_path):
    whole = run_comparison(plan_of(pairs=2), tmp_path / "it")
    again = compare(tmp_path / "it" / "a", tmp_path / "it" / "b")
    assert again.to_json() == whole.to_json()
    assert again.findings.is_paired
