"""Do exported stacks come back from a speedscope file as they were recorded?"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter

import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.archive.folder import contents_of, load_run, save_run
from perfkit.measuring.exporting.speedscope import speedscope_document, write_speedscope
from perfkit.measuring.importers.formats import read_file

STACKS = {
    "mode": "default",
    "rate_hz": 50,
    "threads": [{"id": 7, "name": "worker-0"}, {"id": 8, "name": ""}, {"id": 9, "name": "idle"}],
    "frames": [{"name": name, "file": "m.py", "line": line} for line, name in enumerate(("run", "predict", "log"))],
    "stacks": [[0], [0, 1], [0, 1, 2], []],
    "samples": {"time_ns": None, "thread": [0, 0, 1, 0, 1, 0], "stack": [0, 1, 1, 2, 3, 1]},
}


def test_each_thread_with_samples_is_a_profile_and_each_sample_weighs_one_period():
    document = speedscope_document(STACKS, "planted")
    assert [one["name"] for one in document["profiles"]] == ["worker-0 (7)", "thread (8)"]
    first = document["profiles"][0]
    assert (first["samples"], first["weights"]) == ([[0], [0, 1], [0, 1, 2], [0, 1]], [0.02] * 4)
    assert (first["unit"], first["endValue"]) == ("seconds", pytest.approx(0.08))


def test_what_the_importer_reads_is_what_was_recorded(tmp_path):
    path = tmp_path / "planted.speedscope.json"
    path.write_text(json.dumps(speedscope_document(STACKS, "planted")))
    (profile,) = read_file(path).profiles
    frames = [frame["name"] for frame in STACKS["frames"]]
    stacks = [[frames[index] for index in stack] for stack in STACKS["stacks"]]
    taken = [stacks[stack] for stack in STACKS["samples"]["stack"]]
    own = Counter(stack[-1] for stack in taken if stack)
    total = Counter(name for stack in taken for name in set(stack))
    assert {weight.name: (weight.count, weight.own, weight.total) for weight in profile.top} == {
        name: (own[name], pytest.approx(own[name] / 50), pytest.approx(total[name] / 50)) for name in frames
    }
    assert profile.total == pytest.approx(6 / 50)
    assert profile.threads == {"worker-0 (7)": pytest.approx(4 / 50), "thread (8)": pytest.approx(2 / 50)}


def test_every_kind_of_samples_gets_a_file_of_its_own(tiny, tmp_path):
    stacks = {"default": tiny.stack("default"), "gil": {**tiny.stack("default"), "mode": "gil"}}
    run = save_run(tmp_path / "both", dataclasses.replace(contents_of(tiny), stacks=stacks))
    files = write_speedscope(load_run(run), tmp_path / "out")
    assert [file.name for file in files] == ["default.speedscope.json", "gil.speedscope.json"]
    assert all(read_file(file).profiles[0].samples == 4 for file in files)


def test_a_run_without_stacks_says_what_records_some_and_leaves_nothing(tiny, tmp_path):
    bare = dataclasses.replace(tiny, files={name: one for name, one in tiny.files.items() if "stacks" not in name})
    with pytest.raises(ArchiveError, match="holds no stacks; perfkit profile records some"):
        write_speedscope(bare, tmp_path / "out")
    assert not os.path.lexists(tmp_path / "out")
