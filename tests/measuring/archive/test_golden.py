"""Can this perfkit still open a run of every format version? Each keeps one in `data/runs`.

`PERFKIT_UPDATE_GOLDEN=1` writes the run of the current version again, for a version not yet released.
"""

from __future__ import annotations

import os
import shutil

import pandas

from perfkit.measuring.archive.folder import contents_of, load_run, save_run, verify_run
from perfkit.measuring.archive.format import FORMAT_VERSION, READABLE_VERSIONS
from perfkit.measuring.archive.runs import list_runs
from perfkit.resources import data_path

UPDATE = "PERFKIT_UPDATE_GOLDEN"


def golden(version):
    return data_path("runs") / f"v{version}-tiny"


def test_the_tiny_run_of_the_current_version_holds_what_was_planted(planted):
    folder, expected = golden(FORMAT_VERSION), planted()
    if os.environ.get(UPDATE) == "1":
        shutil.rmtree(folder, ignore_errors=True)
        save_run(folder, expected)
    found = contents_of(load_run(folder))
    assert found.manifest == expected.manifest
    assert found.stacks == expected.stacks
    for name, frame in expected.tables.items():
        pandas.testing.assert_frame_equal(found.tables[name], frame)


def test_every_version_has_a_tiny_run_that_is_whole_labelled_and_small():
    for version in READABLE_VERSIONS:
        assert verify_run(golden(version)) == []
    entries = list_runs(data_path("runs"))
    assert {entry.path.name for entry in entries} == {f"v{version}-tiny" for version in READABLE_VERSIONS}
    assert {entry.title for entry in entries} == {"planted example, not a measurement"}
    assert all(entry.simulated and entry.bytes < 60_000 for entry in entries)
