"""A target with a known delay on one core, generators on another, and the CPU that each one used."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from perfkit.clock import NS_PER_S, REAL_CLOCK
from perfkit.measuring.load.loops import load_to_nested
from perfkit.measuring.load.samples import read_samples

TARGET_CORE, GENERATOR_CORE = 0, 1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BODY = '{"input": "a short text to embed, of about the usual length"}'
SOURCE = Path(__file__).parent / "fixed_delay.c"


@dataclasses.dataclass(frozen=True)
class Usage:
    """What one generator process printed and used, start-up included."""

    printed: str
    cpu_s: float
    neighbours_ratio: float
    """The larger share that other processes took of one of the two cores meanwhile."""


def _first_on(core):
    # Ahead of whatever else the machine does; without the right to that, nice warns and goes on.
    return ["taskset", "-c", str(core), "nice", "-n", "-15"]


class Target:
    """The running fixed-delay service."""

    def __init__(self, binary, *words):
        pinned = [*_first_on(TARGET_CORE), str(binary), *map(str, words)]
        self._process = subprocess.Popen(pinned, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def holds(self):
        """What the service held since the last call, by its own clock, and its stalls so far."""
        with urllib.request.urlopen(f"{self.url}/holds") as reply:
            return json.load(reply)

    def cpu_s(self):
        """CPU time that the service has used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def stop(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def start_target(tmp_path_factory):
    """Start fixed-delay services that end with the session."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores: one for the target, one for the generator")
    compiler = shutil.which("gcc") or pytest.skip("needs gcc for the fixed-delay target")
    binary = tmp_path_factory.mktemp("target") / "fixed_delay"
    subprocess.run([compiler, "-O2", "-o", str(binary), str(SOURCE)], check=True)
    with contextlib.ExitStack() as stack:

        def start(*words):
            target = Target(binary, *words)
            stack.callback(target.stop)
            return target

        yield start


def busy_s(core):
    """Seconds that a core has been at work since boot, for whomever."""
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{core} "))
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def run_pinned(target, command, **popen):
    """Run a generator on its core against a target on its own; returns what it printed and used."""
    pinned = [*_first_on(GENERATOR_CORE), *map(str, command)]
    before = busy_s(GENERATOR_CORE), busy_s(TARGET_CORE) - target.cpu_s()
    started_ns = REAL_CLOCK.now_ns()
    process = subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **popen)
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall_s = (REAL_CLOCK.now_ns() - started_ns) / NS_PER_S
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), printed  # locust exits with 1 when a request failed
    cpu_s = used.ru_utime + used.ru_stime
    after = busy_s(GENERATOR_CORE) - cpu_s, busy_s(TARGET_CORE) - target.cpu_s()
    neighbours_ratio = max(late - early for early, late in zip(before, after, strict=True)) / wall_s
    return Usage(printed=printed, cpu_s=cpu_s, neighbours_ratio=max(0.0, neighbours_ratio))


@pytest.fixture
def run_perfkit(tmp_path):
    """Run our generator; returns its usage, report and samples."""
    payloads = tmp_path / "bench.jsonl"
    payloads.write_text(BODY + "\n")

    def run(target, load, seconds):
        spec = {
            "url": f"{target.url}/predict",
            "load": load_to_nested(load),
            "seconds": seconds,
            "payloads": str(payloads),
            "samples": str(tmp_path / "bench.samples"),
            "report": str(tmp_path / "bench.json"),
        }
        spec_path = tmp_path / "bench.spec.json"
        spec_path.write_text(json.dumps(spec))
        usage = run_pinned(target, [sys.executable, "-m", "perfkit.measuring.load.process", spec_path])
        report = json.loads((tmp_path / "bench.json").read_text())
        return usage, report, read_samples(tmp_path / "bench.samples")

    return run


@pytest.fixture
def run_wrk(tmp_path):
    """Run wrk with the same request; returns its usage, its count of requests and its percentiles in seconds."""
    wrk = shutil.which("wrk") or pytest.skip("needs wrk")
    script = tmp_path / "post.lua"
    script.write_text(f"wrk.method = 'POST'\nwrk.body = '{BODY}'\nwrk.headers['Content-Type'] = 'application/json'\n")

    def run(target, concurrency, seconds):
        words = [wrk, "-t1", f"-c{concurrency}", f"-d{seconds}s", "--latency", "-s", script, f"{target.url}/predict"]
        usage = run_pinned(target, words)
        count = int(re.search(r"(\d+) requests in", usage.printed)[1])
        return usage, count, {int(p): _seconds(text) for p, text in re.findall(r"(\d+)% +(\S+)", usage.printed)}

    return run


def _seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit]


@pytest.fixture
def run_locust(tmp_path):
    """Run locust's fast client with the same request; returns its usage and its count of requests."""
    locust = os.environ.get("PERFKIT_PEER_LOCUST") or pytest.skip("set PERFKIT_PEER_LOCUST to locust's executable")
    script = tmp_path / "locustfile.py"
    script.write_text(
        "from locust import FastHttpUser, task\n\n\nclass Sender(FastHttpUser):\n    @task\n    def send(self):\n"
        f"        self.client.post('/predict', data={BODY!r}, headers={{'Content-Type': 'application/json'}})\n"
    )

    def run(target, concurrency, seconds):
        words = [locust, "-f", script, "--headless", "-u", concurrency, "-r", concurrency, "-t", f"{seconds}s"]
        words += ["-H", target.url, "--json", "-L", "ERROR", "--only-summary"]
        usage = run_pinned(target, words, cwd=tmp_path)
        entries = json.loads(re.search(r"^\[.*^\]", usage.printed, re.S | re.M)[0])
        return usage, sum(entry["num_requests"] for entry in entries)

    return run


@pytest.fixture
def show():
    """Print a table: a heading, then rows of a name and cells."""

    def print_table(heading, columns, rows):
        print(f"\n{heading}")
        for name, cells in [("", columns), *rows]:
            print(f"  {name:34}" + "".join(f"{cell:>14}" for cell in cells))

    return print_table
