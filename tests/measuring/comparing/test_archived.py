"""Is a comparison one result of the archive: listed, exported, pinned and pruned like a run or a scan?"""

import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.archive import durable
from perfkit.measuring.archive.entries import read_entry
from perfkit.measuring.archive.pins import pin, unpin
from perfkit.measuring.archive.pruning import remove_run
from perfkit.measuring.archive.runs import find_run, list_runs
from perfkit.measuring.archive.storedcomparison import load_comparison
from perfkit.measuring.comparing.folder import open_comparison_folder
from perfkit.measuring.comparing.interleaving import run_comparison
from perfkit.measuring.exporting.subject import subject_of
from perfkit.measuring.exporting.tables import tables_of


@pytest.fixture
def compared(plan_of, replayed, tmp_path):
    """The folder of a comparison of two pairs."""
    run_comparison(plan_of(pairs=2), tmp_path / "it")
    return tmp_path / "it"


def test_it_is_listed_with_both_sides_and_the_grades_of_its_runs(compared):
    (entry,) = list_runs(compared.parent, remember=True)
    assert (entry.kind, entry.state, entry.title) == ("comparison", "complete", "workers=2 against workers=1")
    assert (entry.model, entry.points, entry.grades, entry.simulated) == ("noop", 4, {"sound": 4}, False)
    assert (entry.id, entry.created) == (load_comparison(compared).id, load_comparison(compared).created)
    assert entry.bytes > sum(path.stat().st_size for path in compared.rglob("*.parquet"))
    assert list_runs(compared.parent, remember=True) == [entry] == list_runs(compared.parent)


def test_the_index_notices_a_pair_that_was_added_or_lost(compared):
    assert find_run(compared.parent, "it").state == "complete"
    durable.remove(compared / "b" / "001")
    entry = find_run(compared.parent, "it")
    assert (entry.state, entry.points) == ("unfinished", 2)
    assert entry.reason == "1 of 2 pairs to measure; go on with --resume"


def test_a_comparison_of_which_nothing_is_measured_yet_is_listed_too(plan_of, tmp_path):
    open_comparison_folder(tmp_path / "it", plan_of(pairs=3), resume=False).close()
    entry = read_entry(tmp_path / "it")
    assert (entry.state, entry.points, entry.grades, entry.commit) == ("unfinished", 0, {}, "")


def test_its_runs_leave_the_archive_pair_by_pair_with_their_side(compared):
    subject = subject_of(read_entry(compared))
    sides = [(point["varied"]["pair"], point["varied"]["side"]) for point in subject.points]
    assert sides == [(1, "workers=1"), (1, "workers=2"), (2, "workers=1"), (2, "workers=2")]
    requests = dict(tables_of(subject))["requests"]
    assert set(requests["point"].to_pylist()) == {0, 1, 2, 3}
    assert subject_of(read_entry(compared), 3).one.manifest.settings["workers"] == 2


def test_a_pair_keeps_its_number_when_an_earlier_one_was_lost(compared):
    durable.remove(compared / "a" / "000")
    assert [point["varied"]["pair"] for point in load_comparison(compared).points()] == [2, 2]


def test_it_goes_only_when_it_is_whole_unpinned_and_nobody_writes_it(compared, plan_of):
    pin(compared, "the release")
    with pytest.raises(ArchiveError, match=r"is pinned \(the release\)"):
        remove_run(compared)
    unpin(compared)
    with (
        open_comparison_folder(compared, plan_of(pairs=2), resume=True),
        pytest.raises(ArchiveError, match="another process writes"),
    ):
        remove_run(compared)
    remove_run(compared)
    assert list(compared.parent.iterdir()) == []
