"""Which planted run do the archive's tests share?"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from perfkit.measuring.archive.folder import RunContents
from perfkit.measuring.archive.storedscan import ScanHeader

# Run as a file, because tests are no package and the killed children need the same one.
_PLANTED = runpy.run_path(str(Path(__file__).with_name("planted.py")))


@pytest.fixture(scope="session")
def planted() -> Callable[..., RunContents]:
    """Makes the contents of a run: `planted(rounds=2, first_round=0)`."""
    return _PLANTED["planted_contents"]


@pytest.fixture
def header() -> ScanHeader:
    """A scan of two points in two rounds, in another order in each."""
    points = [{"settings": {"model": "simulated:planted", "workers": workers}} for workers in (1, 2)]
    plan = {"points": points, "order": [[1, 0], [0, 1]], "seed": 7, "seconds": 1.0}
    return ScanHeader(
        id="20250102-000000-beef", created="2025-01-02T00:00:00+00:00", simulated=True, title="planted", plan=plan
    )
