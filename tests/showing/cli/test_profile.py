"""Does a profile name the functions, and leave a page with the flame graph?"""

from pathlib import Path

import pytest

from perfkit.measuring.collectors.pyspy import MODES

QUICK = ("profile", "--model", "noop", "--concurrency", "2", "--seconds", "0.3")


def profiled(perfkit, *words):
    ended = perfkit(*QUICK, *words)
    if "permission denied" in ended.err:
        pytest.skip(ended.err)
    return ended


def test_json_lists_the_top_frames_of_each_kind_and_the_page_lies_in_the_folder(perfkit):
    ended = profiled(perfkit, "--json")
    document = ended.document
    assert (ended.code, ended.err) == (0, "")
    assert list(document)[:2] == ["schema", "simulated"]
    assert sorted(document["top_frames"]) == sorted(MODES)
    frames = document["top_frames"]["idle"]
    assert all(set(frame) == {"name", "self_count", "total_count", "self_ratio", "total_ratio"} for frame in frames)
    page = Path(document["folder"]) / "report.html"
    assert "perfkit run: noop" in page.read_text()


def test_a_person_gets_a_table_for_each_kind_and_the_cost_of_looking(perfkit):
    ended = profiled(perfkit, "--out", "mine")
    assert (ended.code, ended.err) == (0, "")
    for title in (
        "running threads (default) · ",
        "threads that hold the GIL (gil) · ",
        "all threads, waiting ones too",
    ):
        assert title in ended.out
    assert ended.out.count(" of CPU in ") == len(MODES)
    place = ended.out.splitlines()[-1].removeprefix("flame graph: ")
    assert Path(place).is_file()
    assert Path(place).parts[0] == "mine"
