"""Can a person find what was archived, and have its page again?"""

import shutil

import pytest

from perfkit.resources import data_path


@pytest.fixture
def archive(tmp_path):
    """A folder with one archived run and one that is damaged."""
    shutil.copytree(data_path("runs", "v1-tiny"), tmp_path / "perfkit-runs" / "tiny")
    damaged = tmp_path / "perfkit-runs" / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    return tmp_path / "perfkit-runs"


def test_what_lies_in_the_usual_folder_is_listed_the_damaged_last_with_the_reason(perfkit, archive):
    ended = perfkit("runs")
    lines = [line for line in ended.out.splitlines() if line.startswith("perfkit-runs/")]
    assert (ended.code, ended.err) == (0, "")
    assert [line.split()[0] for line in lines] == ["perfkit-runs/tiny", "perfkit-runs/damaged"]
    assert "broken: perfkit-runs/damaged/run.json is not whole JSON" in ended.out


def test_the_list_as_json_names_folder_state_and_grades(perfkit, archive):
    document = perfkit("runs", "list", archive, "--json").document
    assert list(document)[:2] == ["schema", "simulated"]
    runs = document["runs"]
    assert [(run["path"], run["state"]) for run in runs] == [
        (str(archive / "tiny"), "complete"),
        (str(archive / "damaged"), "broken"),
    ]
    assert document["simulated"] == any(run["simulated"] for run in runs)


def test_an_empty_folder_is_no_error_and_says_what_makes_runs(perfkit, tmp_path):
    (tmp_path / "empty").mkdir()
    ended = perfkit("runs", "list", "empty")
    assert (ended.code, ended.out) == (0, "")
    assert ended.line == "no runs in empty; perfkit scan or perfkit demo makes some"


def test_an_archived_run_gets_its_page_where_it_lies_or_where_it_is_wanted(perfkit, archive, tmp_path):
    ended = perfkit("report", archive / "tiny")
    assert (ended.code, ended.out) == (0, f"report: {archive / 'tiny' / 'report.html'}\n")
    assert perfkit("report", archive / "tiny", "--out", "page.html").out == "report: page.html\n"
    assert (tmp_path / "page.html").read_text() == (archive / "tiny" / "report.html").read_text()


def test_a_damaged_run_has_no_page(perfkit, archive):
    ended = perfkit("report", archive / "damaged")
    assert (ended.code, ended.out) == (3, "")
    assert "run.json is not whole JSON" in ended.line
