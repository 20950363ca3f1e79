"""How do `perfkit import` and `perfkit audit` answer scripts and people?"""

import pandas
import pytest

SOUND = "concurrency,mean (ms),p99 (ms),qps\n1,10,12,99\n2,11,14,180\n4,22,30,181\n"
WRONG = "concurrency,mean (ms),p99 (ms),qps\n1,10,12,99\n2,11,14,180\n4,44,60,181\n"


@pytest.fixture
def files(tmp_path):
    for name, content in (("sound.csv", SOUND), ("wrong.csv", WRONG), ("empty.csv", ""), ("odd.txt", "hello there\n")):
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


def test_an_audit_that_finds_nothing_ends_with_0(perfkit, files):
    ended = perfkit("audit", "sound.csv", "--json")
    assert (ended.code, ended.err) == (0, "")
    document = ended.document
    assert (document["schema"], document["simulated"], document["format"]) == (1, False, "results table")
    assert document["rows"] == {"read": 3, "kept": 3, "dropped": {}}
    assert document["findings"] == []


def test_an_audit_that_finds_something_ends_with_1_and_names_the_row(perfkit, files):
    ended = perfkit("audit", "wrong.csv", "--json")
    assert (ended.code, ended.err) == (1, "")
    assert [(finding["check"], finding["row"]) for finding in ended.document["findings"]] == [("little", 3)]
    told = perfkit("audit", "wrong.csv")
    assert told.code == 1
    assert "row 3, little: concurrency 4: 181 req/s × 44.0 ms = 7.96 requests in flight" in told.out
    assert "Little 1961" in told.out


def test_a_folder_of_mixed_files_is_read_as_far_as_it_goes(perfkit, files):
    ended = perfkit("import", ".", "--json")
    assert ended.code == 0
    assert [one["path"] for one in ended.document["files"]] == ["sound.csv", "wrong.csv"]
    assert [one["path"] for one in ended.document["refused"]] == ["empty.csv", "odd.txt"]
    assert ended.document["files"][0]["levels"][2]["percentiles_s"] == {"p99": 0.03}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty.csv", "the file is empty; expected the output of a load generator or profiler"),
        ("odd.txt", "not understood; it begins “hello there”. Known formats: "),
        ("gone.csv", "no such file or directory; give a readable file"),
    ],
)
def test_what_cannot_be_read_is_wrong_use_told_in_one_line(perfkit, files, name, text):
    ended = perfkit("audit", name, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert f"{name}: {text}" in ended.line
    assert perfkit("import", name).code == 2


def test_a_table_is_shown_to_a_person(perfkit, files):
    ended = perfkit("import", "sound.csv")
    assert ended.code == 0
    assert "results table: 3 rows read, 3 kept" in ended.out
    assert "concurrency 4" in ended.out


def test_files_are_kept_as_runs_beside_those_that_are_there(perfkit, files):
    first = perfkit("import", "sound.csv", "wrong.csv", "--out", "kept", "--json")
    assert first.code == 0
    folders = [one["run"] for one in first.document["files"]]
    assert [[finding["row"] for finding in one["findings"]] for one in first.document["files"]] == [[], [3]]
    again = perfkit("import", "sound.csv", "--out", "kept")
    assert (again.code, again.err) == (0, "")
    listed = perfkit("runs", "list", "kept", "--json").document["runs"]
    assert len(listed) == 3
    assert {one["state"] for one in listed} == {"complete"}
    assert set(folders) < {one["path"] for one in listed}


def test_a_kept_file_has_a_report_of_its_own(perfkit, files):
    (kept,) = perfkit("import", "wrong.csv", "--out", "kept", "--json").document["files"]
    assert perfkit("report", kept["run"], "--out", "page.html").code == 0
    page = (files / "page.html").read_text("utf-8")
    assert "row 3, little: concurrency 4" in page
    assert "file-0-load" in page


def test_many_files_share_one_page(perfkit, files):
    ended = perfkit("import", ".", "--report", "page.html")
    assert ended.code == 0
    assert "report: page.html" in ended.out
    page = (files / "page.html").read_text("utf-8")
    assert "2 imported files" in page
    assert "odd.txt: not understood; it begins “hello there”" in page


def test_single_requests_are_kept_as_parquet(perfkit, files):
    rows = "".join(f"{1_800_000_000_000 + 10 * n}|{20 + n}|get|200|G 1-1|true|100|5|5|30|1|0|null\n" for n in range(30))
    (files / "requests.jtl").write_text(rows)
    (kept,) = perfkit("import", "requests.jtl", "--out", "kept", "--json").document["files"]
    frame = pandas.read_parquet(files / kept["run"] / "requests.parquet")
    assert (frame["received_ns"] - frame["sent_ns"]).tolist() == [(20 + n) * 1_000_000 for n in range(30)]
