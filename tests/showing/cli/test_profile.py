"""Does a profile name the functions, and leave a page with the flame graph?"""

from pathlib import Path

import pytest

from perfkit.measuring import profile
from perfkit.measuring.collectors.pyspy import MODES
from perfkit.measuring.experiment import open_run

QUICK = ("profile", "--model", "noop", "--concurrency", "2", "--seconds", "0.3")


def test_scripts_get_the_top_frames_of_each_kind_and_people_a_table_and_the_cost_of_looking(perfkit, monkeypatch):
    ended = perfkit(*QUICK, "--json", "--out", "mine")
    if "permission denied" in ended.err:
        pytest.skip(ended.err)
    document = ended.document
    assert (ended.code, ended.err) == (0, "")
    assert list(document)[:2] == ["schema", "simulated"]
    assert sorted(document["top_frames"]) == sorted(MODES)
    names = {"name", "self_count", "total_count", "self_ratio", "total_ratio"}
    assert all(set(frame) == names for frame in document["top_frames"]["idle"])
    folder = Path(document["folder"])
    assert folder.parent == Path("mine")
    assert "perfkit run: noop" in (folder / "report.html").read_text()

    monkeypatch.setattr(profile, "profile", lambda *_: open_run(folder))  # once more, for people
    told = perfkit(*QUICK)
    assert (told.code, told.err) == (0, "")
    for title in ("running threads (default) · ", "threads that hold the GIL (gil) · ", "all threads, waiting ones "):
        assert title in told.out
    assert told.out.count(" of CPU in ") == len(MODES)
    assert told.out.splitlines()[-1] == f"flame graph: {folder / 'report.html'}"
