"""Does a load end at a look when enough is known, and never between looks?"""

import dataclasses

import numpy as np
import pytest

from perfkit.measuring.analysis.precision import parse_goal
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.samples import ROW
from perfkit.measuring.phase import Progress
from perfkit.measuring.replicates import Trial, measure_replicates, reseeded
from perfkit.measuring.service import attach, launch
from perfkit.measuring.until import Lookout, measure_until, read_latencies
from perfkit.records import EndState

MS = 1_000_000


def write_samples(path, latencies_ns, outcomes=None):
    outcomes = outcomes or [EndState.OK] * len(latencies_ns)
    rows = [
        (number, 0, number * MS, number * MS, number * MS + latency, 200, int(outcome), 10, 10)
        for number, (latency, outcome) in enumerate(zip(latencies_ns, outcomes, strict=True))
    ]
    path.write_bytes(b"".join(ROW.pack(*row) for row in rows))


@pytest.fixture
def narrow(tmp_path):
    """Two thousand latencies of which the median is known to less than 1 %."""
    path = tmp_path / "load.samples"
    write_samples(path, np.random.default_rng(1).normal(10 * MS, 0.5 * MS, 2_000).astype(int).tolist())
    return path


def progress(samples, elapsed_s):
    return Progress(elapsed_s=elapsed_s, total_s=60.0, samples=(samples,), stats=None)


def test_it_looks_only_at_its_instants_and_ends_there(narrow):
    lookout = Lookout(parse_goal("p50:5%", 10.0, 60.0), OpenLoop(rate_rps=100.0), lambda one: None)
    assert [lookout(progress(narrow, at)) for at in (1.0, 9.9, 10.1)] == [False, False, True]
    assert (lookout.looks, lookout.is_reached) == (1, True)


def test_what_is_not_known_well_enough_goes_on(narrow):
    lookout = Lookout(parse_goal("p50:0.01%", 10.0, 60.0), OpenLoop(rate_rps=100.0), lambda one: None)
    assert [lookout(progress(narrow, at)) for at in (10.1, 15.0, 20.1, 45.0)] == [False] * 4
    assert lookout.looks == 3


def test_whoever_watches_may_still_end_it(narrow):
    lookout = Lookout(parse_goal("p50:0.01%", 10.0, 60.0), ClosedLoop(), lambda one: True)
    assert lookout(progress(narrow, 1.0))


def test_time_outs_are_infinite_and_failures_do_not_count(tmp_path):
    write_samples(tmp_path / "s", [MS, 2 * MS, 3 * MS], [EndState.OK, EndState.TIMED_OUT, EndState.FAILED])
    assert read_latencies([tmp_path / "s"]).tolist() == [0.001, np.inf]
    assert read_latencies([tmp_path / "absent"]).tolist() == []


def test_a_run_that_was_asked_says_in_its_certificate_how_it_went(server, tmp_path):
    load = OpenLoop(rate_rps=200.0, arrivals="constant")
    goal = parse_goal("p50:90%", 0.5, 2.0)
    (run,) = measure_until(server, {"": load}, goal, tmp_path, lambda one: None).values()
    entry = next(one for one in run.point["certificate"]["entries"] if one["name"] == "precision")
    told = "not applicable" if run.grade == "void" else "pass"  # void: the machine was too busy to send on time
    assert (entry["status"], entry["threshold"], entry["costs"]) == (told, 0.9, "nothing")
    assert sum(one["seconds"] for one in run.point["rounds"]) < 2.1
    assert run.stored.manifest.further["until"]["looks"] >= 1


def test_each_replicate_starts_anew_with_a_seed_of_its_own(server, tmp_path):
    started = []

    def start():
        started.append(attach(server.url))
        return started[-1]

    load = OpenLoop(rate_rps=100.0, payloads="numbers/noop.jsonl")
    found = measure_replicates(start, Trial(loads={"": load}, seconds=0.2, out=tmp_path), 2, lambda one: None)
    assert len(started) == 2
    assert [run.point["load"]["seed"] for runs in found for run in runs.values()] == [0, 100_000]


@pytest.mark.slow
def test_each_replicate_of_a_launched_service_has_a_process_of_its_own(tmp_path):
    pids = []

    def start():
        service = launch(model="noop")
        pids.append(service.pid)
        return service

    trial = Trial(loads={"": OpenLoop(rate_rps=100.0)}, seconds=0.2, out=tmp_path)
    found = measure_replicates(start, trial, 2, lambda one: None)
    assert (len(found), len(set(pids))) == (2, 2)


def test_the_first_replicate_has_the_seed_that_was_asked_for():
    load = ClosedLoop(seed=7)
    assert reseeded(load, 0) == load
    assert reseeded(load, 2) == dataclasses.replace(load, seed=200_007)
