"""A planted run whose every figure is known, a scan of two points of it, and a real run with a real ledger."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfkit.measuring.archive.entries import RunEntry, read_entry
from perfkit.measuring.archive.folder import StoredRun, load_run
from perfkit.measuring.archive.scanfolder import create_scan
from perfkit.measuring.archive.storedscan import ScanHeader
from perfkit.measuring.experiment import measure
from perfkit.measuring.load.loops import OpenLoop
from perfkit.measuring.service import launch
from perfkit.resources import data_path

PLANTED = runpy.run_path(str(Path(__file__).parents[1] / "archive" / "planted.py"))


@pytest.fixture
def tiny(tmp_path) -> StoredRun:
    """The planted run of six requests in two batches."""
    shutil.copytree(data_path("runs", "v1-tiny"), tmp_path / "tiny")
    return load_run(tmp_path / "tiny")


@pytest.fixture
def tiny_scan(tmp_path) -> RunEntry:
    """Two points, one round each, six requests in all."""
    plan = {"points": [{"settings": {"workers": 1}}, {"settings": {"workers": 2}}], "order": [[0, 1]]}
    header = ScanHeader(id="scan-1", created="2025-01-02T00:00:00+00:00", simulated=True, plan=plan)
    with create_scan(tmp_path / "scan", header) as scan:
        for part in scan.pending_parts():
            scan.save_part(part, PLANTED["planted_contents"](rounds=1))
        scan.finish([{"varied": {"workers": 1}, "grade": "sound"}, {"varied": {"workers": 2}, "grade": "void"}])
    entry = read_entry(tmp_path / "scan")
    assert entry is not None
    return entry


@pytest.fixture(scope="session")
def real(tmp_path_factory) -> Iterator[StoredRun]:
    """What two workers did for some 500 requests, in batches of up to four."""
    folder = tmp_path_factory.mktemp("real")
    with launch(model="noop", workers=2, batch={"max_size": 4, "max_delay_s": 0.001}) as service:
        yield measure(service, OpenLoop(rate_rps=700), 0.6, folder).stored
