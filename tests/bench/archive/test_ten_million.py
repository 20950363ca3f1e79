"""Do ten million archived requests come back as quantiles with intervals and a plot, in 5 s and 2 GB?

CPU time is judged, which a busy machine does not change much, from the start of a process with its imports; the
wall time is printed beside it.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import perfkit
from perfkit.units import format_bytes, format_duration

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

PLANTED = runpy.run_path(str(Path(__file__).with_name("planted_millions.py")))
ROWS = 10_000_000
POINTS = 10
MOST_S = 5.0
MOST_BYTES = 2_000_000_000


@pytest.mark.parametrize("kind", ["a scan of ten points", "one run"])
def test_ten_million_rows(tmp_path, kind):
    folder = tmp_path / "long"
    if kind == "one run":
        PLANTED["save_long_run"](folder, ROWS)
    else:
        PLANTED["save_long_scan"](folder, POINTS, ROWS // POINTS)
    found = read(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    seconds, peak = format_duration(found["cpu_s"]), format_bytes(found["peak_bytes"])
    print(
        f"\n{kind}: {found['rows']:,} rows in {format_bytes(size)}: {seconds} of CPU, "
        f"{format_duration(found['wall_s'])} of wall time, at most {peak} of memory; P99 {found['p99']}"
    )
    assert found["rows"] == ROWS
    assert found["p99"]["low"] < found["p99"]["value"] < found["p99"]["high"]
    assert found["cpu_s"] < MOST_S
    assert found["peak_bytes"] < MOST_BYTES


def read(folder):
    where = str(Path(perfkit.__file__).parents[1])
    program = str(Path(__file__).with_name("read_millions.py"))
    done = subprocess.run(
        [sys.executable, program, str(folder)],
        env=os.environ | {"PYTHONPATH": f"{where}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)
