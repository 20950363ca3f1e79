"""One real run of each kind of bad run, over sockets: is it graded as it should be, for the reason that was planted?

The hundreds of each kind that say how surely are in virtual time, in `analysis/test_seeded_runs.py`. A busy machine
adds faults of its own, such as a late generator; so what must have failed is the planted entry, and the grade no
better than what it costs.
"""

import os
import subprocess
import sys

import pytest

from perfkit.measuring import service as service_module
from perfkit.measuring.experiment import measure
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.placement import Placement
from perfkit.measuring.service import Service, launch

pytestmark = pytest.mark.slow

WORST_FIRST = ("void", "unsteady", "short", "sound")


def judged(run):
    """The grade, and the entries that failed."""
    entries = run.point["certificate"]["entries"]
    return run.grade, {one["name"]: one["reason"] for one in entries if one["status"] == "fail"}


def check(kind, run, wanted, entries):
    grade, failed = judged(run)
    found = sorted(set(failed) & entries)
    print(f"\n{kind}: {grade}, wanted {wanted}; {failed[found[0]] if found else failed}", end="")
    assert found
    assert WORST_FIRST.index(grade) <= WORST_FIRST.index(wanted)


BURNER = "import os; os.sched_setaffinity(0, {%d})\nwhile True: pass"


@pytest.fixture
def crowded_core():
    """Four processes that compute on the core which the generator is given."""
    core = max(os.sched_getaffinity(0))
    burners = [subprocess.Popen([sys.executable, "-c", BURNER % core]) for _ in range(4)]
    yield core
    for burner in burners:
        burner.kill()
        burner.wait()


def test_a_saturated_client(crowded_core, tmp_path):
    """The core of the generator is full; that of the server, which answers in 10 ms, is not."""
    with launch(model="simulated:steady-100rps") as service:
        run = measure(service, OpenLoop(rate_rps=40.0), seconds=4.0, out=tmp_path)
    check("saturated client", run, "void", {"generator lateness", "achieved rate"})


def test_a_cold_start(planted_models, payloads, tmp_path):
    with launch(model="ageing:Cold", workers=1, batch={"max_size": 1}) as service:
        run = measure(service, ClosedLoop(concurrency=2, payloads=payloads), seconds=8.0, out=tmp_path)
    steady = {"warm-up", "steps", "drift", "windows: throughput", "windows: P50", "windows: P99"}
    check("cold start", run, "unsteady", steady)


def test_too_few_samples(tmp_path):
    with launch(model="simulated:steady-100rps") as service:
        run = measure(service, ClosedLoop(concurrency=1), seconds=1.0, out=tmp_path)
    check("too few samples", run, "short", {"P95 sample", "P99 sample"})


def test_a_drift(planted_models, payloads, tmp_path):
    with launch(model="ageing:Tiring", workers=1, batch={"max_size": 1}) as service:
        run = measure(service, ClosedLoop(concurrency=2, payloads=payloads), seconds=6.0, out=tmp_path)
    check("drift", run, "unsteady", {"steps", "drift", "windows: throughput", "windows: P50"})


def test_identical_payloads(server, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"input": 1}\n{"input": 1}\n')
    run = measure(server, ClosedLoop(concurrency=2, payloads=str(path)), seconds=1.0, out=tmp_path)
    check("identical payloads", run, "short", {"payloads"})


def test_a_stale_gauge(tmp_path, monkeypatch):
    """What reads the statistics is answered from a cache once the load runs."""
    whole, kept = Service.stats, {}

    def cached(self):
        stats = whole(self)
        if stats["gauge"]["in_flight"] > 0:
            kept.setdefault("gauge", stats["gauge"])
        return stats | ({"gauge": kept["gauge"] | {"time_ns": stats["gauge"]["time_ns"]}} if kept else {})

    monkeypatch.setattr(Service, "stats", cached)
    with launch(model="simulated:steady-100rps") as service:
        run = measure(service, ClosedLoop(concurrency=4), seconds=2.0, out=tmp_path)
    check("stale gauge", run, "void", {"gauge fresh"})


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core there is no other to be on")
def test_a_generator_on_the_servers_core(tmp_path, monkeypatch):
    core = min(os.sched_getaffinity(0))
    both = Placement(server_cpus=(core,), generator_cpus=(core,), generator_nice=None)
    monkeypatch.setattr(service_module, "place", lambda model: both)
    with launch(model="simulated:steady-100rps") as service:
        run = measure(service, ClosedLoop(concurrency=2), seconds=2.0, out=tmp_path)
    check("generator on the server's core", run, "void", {"generator core"})


def test_a_clean_run(tmp_path):
    """Sound where the machine left it alone; else only the machine's own entries may have failed."""
    with launch(model="simulated:steady-100rps") as service:
        run = measure(service, ClosedLoop(concurrency=2), seconds=8.0, out=tmp_path)
    grade, failed = judged(run)
    print(f"\nclean: {grade}; {failed}", end="")
    of_the_machine = {"generator lateness", "generator CPU", "steal", "windows: P99", "windows: P50", "steps", "drift"}
    assert set(failed) <= of_the_machine | {"P99 sample", "windows: throughput"}
