"""Does a million real requests stay within the memory limit?"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from perfkit.measuring.load import client
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.load.samples import ROW, read_samples

REQUESTS = 1_000_000
MOST_GROWTH_KIB = 200 * 1024
TARGET_SOURCE = Path(__file__).parents[2] / "bench" / "load" / "fixed_delay.c"


@pytest.fixture
def fast_port(tmp_path):
    """The port of a service that answers at once."""
    compiler = shutil.which("gcc") or pytest.skip("needs gcc for a service fast enough")
    binary = tmp_path / "fixed_delay"
    subprocess.run([compiler, "-O2", "-o", str(binary), str(TARGET_SOURCE)], check=True)
    with subprocess.Popen([str(binary), "0"], stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.kill()


def peak_kib(pid):
    """The most memory that a process has had, or None when it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return None
    return int(found[1]) if found else None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_million_requests_grow_memory_by_less_than_the_limit(fast_port, make_spec, tmp_path):
    spec = make_spec(fast_port, ClosedLoop(concurrency=64), 240)
    with client.start(spec, tmp_path) as generator:
        first_kib = last_kib = None
        while not spec.samples.exists() or spec.samples.stat().st_size < REQUESTS * ROW.size:
            assert not generator.wait_briefly(0.05)
            last_kib = peak_kib(generator.pid) or last_kib
            if first_kib is None and spec.samples.exists() and spec.samples.stat().st_size:
                first_kib = last_kib
        generator.stop()
        report = generator.report()
    assert report["outcomes"] == {"ok": report["scheduled"]}
    assert len(read_samples(spec.samples)["status"]) == report["scheduled"] >= REQUESTS
    print(f"{report['scheduled']:,} requests: {first_kib:,} KiB at the start, {last_kib:,} KiB at most")
    assert last_kib - first_kib < MOST_GROWTH_KIB
