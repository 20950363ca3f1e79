"""Can NVIDIA's load tool drive the server, and do its figures and ours agree on what was served?

It is a native program, not a package of ours: `PERFKIT_PERF_ANALYZER` names the command (several words are allowed).
"""

from __future__ import annotations

import csv
import os
import shlex
import shutil
import subprocess
from urllib.parse import urlsplit

import pytest

from perfkit.measuring.service import launch

COMMAND = shlex.split(os.environ.get("PERFKIT_PERF_ANALYZER", "")) or [shutil.which("perf_analyzer") or ""]
SHORT = ["--measurement-interval=500", "--stability-percentage=10000", "--concurrency-range=2"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND[0], reason="no perf_analyzer on the path; PERFKIT_PERF_ANALYZER may name it"),
]


@pytest.mark.parametrize(
    "way",
    [[], ["--async"], ["-b", "8"], ["--input-tensor-format=json", "--output-tensor-format=json"]],
    ids=["bytes", "async", "eight inputs a request", "json"],
)
def test_it_measures_and_reads_our_statistics(tmp_path, way):
    table = tmp_path / "figures.csv"
    with launch(model="noop") as service:
        where = [
            "-u",
            urlsplit(service.url).netloc,
            "-i",
            "http",
            "--service-kind=triton",
            "-m",
            "noop",
            "-f",
            str(table),
        ]
        done = subprocess.run([*COMMAND, *where, *SHORT, *way], capture_output=True, text=True, timeout=90, check=False)
        counters = service.stats()["counters"]
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = csv.DictReader(table.open())
    assert float(row["Inferences/Second"]) > 0
    parts = ("Server Queue", "Server Compute Input", "Server Compute Infer", "Server Compute Output")
    assert all(int(row[part]) >= 0 for part in parts)
    assert int(row["Server Queue"]) > 0
    assert {name for name, count in counters.items() if count} == {"accepted", "ok"}
