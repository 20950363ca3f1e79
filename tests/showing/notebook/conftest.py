"""What do the notebook's tests share: a run with stacks from data/, and a small real scan of the no-op model."""

from __future__ import annotations

import pytest

from perfkit import ClosedLoop
from perfkit.measuring.experiment import open_run
from perfkit.measuring.scanning.grid import run_scan
from perfkit.measuring.scanning.host import Launched
from perfkit.measuring.scanning.plan import Axis, ScanPlan, grid
from perfkit.resources import data_path
from perfkit.settings.server import ServerSettings


@pytest.fixture(scope="session")
def profiled_run():
    """A planted run with one recording of stacks."""
    return open_run(data_path("runs", "v1-tiny"))


@pytest.fixture(scope="session")
def scan(tmp_path_factory):
    """Two points of the no-op model, measured for a moment."""
    settings = ServerSettings(model="noop")
    axes = {"workers": Axis(name="server.workers", values=(1, 2))}
    points = grid(settings, ClosedLoop(concurrency=4), axes)
    plan = ScanPlan(points=points, seconds=0.4, rounds=1, seed=0)
    with Launched() as host:
        return run_scan(plan, host, tmp_path_factory.mktemp("scans") / "scan")
