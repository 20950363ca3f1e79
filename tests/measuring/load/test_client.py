"""Does a generator process leave readable files however it ends, and say what stopped it?"""

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from perfkit.errors import ConfigError, EnvironmentLacks
from perfkit.measuring.load import client
from perfkit.measuring.load.loops import ClosedLoop, OpenLoop
from perfkit.measuring.load.samples import ROW, read_samples
from perfkit.measuring.load.spec import read_spec, write_spec
from perfkit.records import EndState

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PATIENCE_S = 30


def finish(generator):
    """The report of a phase that ends by itself."""
    assert generator.wait_briefly(PATIENCE_S)
    return generator.report()


def wait_for_rows(path, count):
    async def poll():
        while not path.exists() or path.stat().st_size < count * ROW.size:
            await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(poll(), PATIENCE_S))


def test_a_process_runs_a_phase_and_hands_back_its_report(serve, always, make_spec, tmp_path):
    service = serve(always(OK))
    spec = make_spec(service.port, ClosedLoop(concurrency=2), 0.3, first_request_id=1000, cpus=(0,), nice=1)
    with client.start(spec, tmp_path) as generator:
        report = finish(generator)
    samples = read_samples(spec.samples)
    assert report["outcomes"] == {"ok": report["scheduled"]} == {"ok": len(service.requests)}
    assert sorted(samples["request_id"].tolist()) == list(range(1000, 1000 + report["scheduled"]))
    assert (report["cpus"], report["nice"], report["not_placed"]) == ([0], 1, [])
    assert report["cpu_ratio"] == pytest.approx(report["core_ratio"] / report["usable_cores"])


def test_sigterm_leaves_samples_and_a_report(serve, always, make_spec, tmp_path):
    spec = make_spec(serve(always(OK)).port, OpenLoop(rate_rps=200), 60)
    with client.start(spec, tmp_path) as generator:
        wait_for_rows(spec.samples, 10)
        generator.stop()
        report = generator.report()
    assert report["was_stopped"] is True
    assert report["scheduled"] == sum(report["outcomes"].values()) == len(read_samples(spec.samples)["status"])
    assert report["errors"] == {}


def test_a_killed_process_leaves_the_samples_that_it_had_written(serve, always, make_spec, tmp_path):
    spec = make_spec(serve(always(OK)).port, OpenLoop(rate_rps=200), 60)
    with client.start(spec, tmp_path) as generator:
        wait_for_rows(spec.samples, 10)
        os.kill(generator.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentLacks, match="the load generator ended with exit code -9"):
            finish(generator)
    assert not spec.report.exists()
    assert set(read_samples(spec.samples)["outcome"].tolist()) == {EndState.OK}


def test_a_bad_payload_file_is_reported_as_such(serve, always, make_spec, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\nnot json\n")
    spec = make_spec(serve(always(OK)).port, ClosedLoop(), 1, payloads=bad)
    with client.start(spec, tmp_path) as generator, pytest.raises(ConfigError, match="line 2 of payload file"):
        finish(generator)


def test_a_full_disk_is_reported_as_such(serve, always, make_spec, tmp_path):
    spec = make_spec(serve(always(OK)).port, ClosedLoop(), 0.3, samples=Path("/dev/full"))
    with client.start(spec, tmp_path) as generator, pytest.raises(EnvironmentLacks, match="No space left on device"):
        finish(generator)


def test_a_phase_that_outlasts_its_block_is_ended(serve, always, make_spec, tmp_path):
    spec = make_spec(serve(always(OK)).port, OpenLoop(rate_rps=50), 60)
    with client.start(spec, tmp_path) as generator:
        wait_for_rows(spec.samples, 1)
        assert not generator.wait_briefly(0.01)
    assert generator.wait_briefly(0)
    assert generator.report()["was_stopped"] is True


def test_a_remote_target_is_refused_before_a_process_starts(make_spec, tmp_path):
    spec = dataclasses.replace(make_spec(80, ClosedLoop(), 1), url="http://8.8.8.8/")
    with pytest.raises(ConfigError, match="outside this host"):
        client.start(spec, tmp_path)


def test_a_spec_comes_back_from_its_file(make_spec, tmp_path):
    further = {"gate": tmp_path / "gate", "allow_remote": True, "drain_s": 0.5}
    spec = make_spec(80, OpenLoop(rate_rps=3.5), 1.5, cpus=(0, 1), **further)
    write_spec(spec, tmp_path / "spec.json")
    assert read_spec(tmp_path / "spec.json") == spec


def test_a_phase_that_cannot_be_is_refused(make_spec):
    with pytest.raises(ConfigError, match="seconds is 0; it takes a number above 0"):
        make_spec(80, ClosedLoop(), 0)
    with pytest.raises(ConfigError, match="more than the 50,000,000 that one schedule holds"):
        make_spec(80, OpenLoop(rate_rps=1_000_000), 60)


@pytest.mark.parametrize("content", ["not json", "{}", '{"urls": "x"}'])
def test_a_file_that_is_no_spec_is_refused(tmp_path, content):
    (tmp_path / "spec.json").write_text(content)
    with pytest.raises(ConfigError, match=r"spec\.json is not a load spec"):
        read_spec(tmp_path / "spec.json")


def test_the_process_imports_nothing_heavy():
    listing = "import sys, perfkit.measuring.load.process; print(' '.join(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", listing], check=True, capture_output=True, text=True).stdout
    assert not {"numpy", "pandas", "torch", "asyncio", "uvloop", "scipy"} & set(printed.split())


def test_the_report_is_whole_json_whenever_it_exists(serve, always, make_spec, tmp_path):
    spec = make_spec(serve(always(OK)).port, ClosedLoop(), 0.1)
    with client.start(spec, tmp_path) as generator:
        report = finish(generator)
    assert orjson.loads(spec.report.read_bytes()) == report
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
