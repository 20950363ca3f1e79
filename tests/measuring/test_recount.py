"""Are the figures from a few columns those that the whole run gave?"""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.errors import ArchiveError
from perfkit.measuring.experiment import measure
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.recount import recount
from perfkit.measuring.service import launch


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short run of a closed loop."""
    with launch(model="noop") as service:
        return measure(service, ClosedLoop(concurrency=4), 0.3, tmp_path_factory.mktemp("runs"))


def test_a_recount_gives_the_certificates_own_figures(run):
    found = recount(run.stored)
    latency = {name: one.to_json() for name, one in found.latency.items()}
    assert found.requests == run.point["requests"]
    if run.grade != "void":  # whose figures are withheld
        assert found.throughput.to_json() == run.point["throughput_rps"]
        assert latency["p50"] == run.point["latency_s"]["p50"]
    assert {name: one["n"] for name, one in latency.items()} == {
        name: one["n"] for name, one in run.point["latency_s"].items()
    }


def test_a_changed_file_is_refused_before_a_row_is_read(run):
    path = run.folder / "requests.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + b"X" + whole[-8:])
    try:
        with pytest.raises(ArchiveError, match="its hash differs"):
            recount(run.stored)
    finally:
        path.write_bytes(whole)


def test_a_run_without_rounds_cannot_be_recounted(run):
    manifest = dataclasses.replace(run.stored.manifest, rounds=[])
    with pytest.raises(ArchiveError, match="tells no rounds"):
        recount(dataclasses.replace(run.stored, manifest=manifest))
