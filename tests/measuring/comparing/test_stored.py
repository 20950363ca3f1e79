"""May the archived runs in two folders be compared, and is it said what disturbs that?"""

import dataclasses

import pytest

from perfkit import fields
from perfkit.errors import ArchiveError, ConfigError
from perfkit.measuring.analysis.compare.verdict import Rule
from perfkit.measuring.archive.folder import save_run
from perfkit.measuring.comparing.baseline import Repetition, measure_replicates, seconds_of, side_of
from perfkit.measuring.comparing.interleaving import compare_folders
from perfkit.measuring.comparing.stored import NOT_INTERLEAVED, read_replicates


@pytest.fixture
def folder_of(recorded, tmp_path):
    """A folder of recorded runs; `environment` and `settings` change what they say of themselves."""

    def make(name, count=3, environment=None, settings=None, grade=None):
        folder = tmp_path / name
        for number in range(count):
            manifest = dataclasses.replace(
                recorded.manifest,
                id=f"{name}-{number}",
                created=f"2026-01-01T00:00:{number:02d}+00:00",
                environment={**recorded.manifest.environment, **(environment or {})},
                settings={**recorded.manifest.settings, "seed": number, **(settings or {})},
                certificate={**recorded.manifest.certificate, **({"grade": grade} if grade else {})},
            )
            save_run(folder / f"{number:03d}", dataclasses.replace(recorded, manifest=manifest))
        return folder

    return make


def test_runs_of_two_folders_are_compared_and_it_is_said_that_they_were_not_interleaved(folder_of):
    found = compare_folders(folder_of("old", 5), folder_of("new", 4, settings={"workers": 2}), Rule())
    assert (found.findings.is_paired, len(found.runs_a), len(found.runs_b)) == (False, 5, 4)
    assert found.notes == (NOT_INTERLEAVED,)
    assert NOT_INTERLEAVED in repr(found)


def test_runs_of_several_settings_are_no_one_side(folder_of):
    folder = folder_of("mixed", 2)
    folder_of("other", 1, settings={"workers": 7})
    (folder.parent / "other" / "000").rename(folder / "002")
    with pytest.raises(ConfigError, match=r"several settings: in 00\d settings\.workers is \d, there \d"):
        read_replicates(folder)


def test_runs_of_different_machines_are_compared_only_when_asked(folder_of):
    here, there = folder_of("here"), folder_of("there", environment={"machine": "another", "python": "9.9"})
    with pytest.raises(ConfigError, match=r"different machines .*--across-machines"):
        compare_folders(here, there, Rule())
    notes = compare_folders(here, there, Rule(), across_machines=True).notes
    assert [note for note in notes if note.startswith("different machines: machine ")] != []
    assert [note for note in notes if note.startswith("python differs: ")] != []


def test_a_void_run_is_named_with_its_reason_and_counts_for_nothing(folder_of):
    found = compare_folders(folder_of("old"), folder_of("void", 2, grade="void"), Rule())
    assert (found.verdict, found.findings.counted[1]) == ("void", 0)
    assert [line.split(" (")[0] for line in found.left_out if "void-" in line] == ["B run 1", "B run 2"]
    assert "is void and left out" in found.left_out[-1]


def test_an_empty_folder_and_a_run_without_certificate_are_refused(recorded, tmp_path):
    with pytest.raises(ConfigError, match="holds no runs"):
        read_replicates(tmp_path)
    bare = dataclasses.replace(recorded, manifest=dataclasses.replace(recorded.manifest, certificate=None))
    save_run(tmp_path / "bare", bare)
    with pytest.raises(ArchiveError, match="holds no certificate"):
        read_replicates(tmp_path)


def test_a_baseline_says_what_its_candidate_is_to_run_with(folder_of):
    baseline = read_replicates(folder_of("baseline"))
    side = side_of(baseline)
    assert (side.settings.model, side.load.concurrency) == ("noop", 2)
    assert seconds_of(baseline.manifest) == pytest.approx(0.2, abs=0.11)


def test_replicates_are_measured_into_a_new_folder_only(tmp_path, replayed, folder_of):
    side = side_of(read_replicates(folder_of("baseline")))
    plan = Repetition(side=side, runs=2, seconds=0.2, folder=tmp_path / "kept")
    kept = measure_replicates(plan)
    assert sorted(run.name for run in (tmp_path / "kept").iterdir()) == ["000", "001"]
    assert (len(kept.runs), replayed) == (2, [("candidate", 0), ("candidate", 1)])
    with pytest.raises(ConfigError, match="is there already"):
        measure_replicates(plan)
    with pytest.raises(ConfigError, match="runs is 0"):
        dataclasses.replace(plan, runs=0)


def test_a_baseline_that_was_cut_short_goes_on_with_what_is_missing(tmp_path, replayed, folder_of):
    side = side_of(read_replicates(folder_of("baseline")))
    plan = Repetition(side=side, runs=1, seconds=0.2, folder=tmp_path / "kept")
    with pytest.raises(ConfigError, match="holds no runs"):
        measure_replicates(plan, resume=True)
    measure_replicates(plan)
    kept = measure_replicates(dataclasses.replace(plan, runs=3), resume=True)
    assert (len(kept.runs), replayed) == (3, [("candidate", 0), ("candidate", 1), ("candidate", 2)])
    other = dataclasses.replace(side, settings=fields.replace(side.settings, {"workers": 2}))
    with pytest.raises(ConfigError, match=r"runs of another setting: settings\.workers is 2, there 1"):
        measure_replicates(dataclasses.replace(plan, side=other), resume=True)
