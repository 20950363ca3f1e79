"""Is the GPU recorded by a process of its own, over the library that the real binding finds by itself?"""

import dataclasses
import os
import signal

import pytest

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.collectors.nvml.collector import GpuSampler, describe


@pytest.fixture
def target(tmp_path):
    return Target(pid=os.getpid(), folder=tmp_path)


@pytest.fixture
def driver(monkeypatch, nvml_folder):
    """The loader of processes started from here finds the stub."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))


def rows_of(recording, name):
    return [row.value for row in recording.series if row.name == name]


def test_the_gpu_is_recorded_and_the_sampler_says_what_it_cost(driver, target, tmp_path, eventually):
    sampler = GpuSampler(rate_hz=50.0)
    sampler.start(target)
    eventually(lambda: "\tsm_active\t" in (tmp_path / "gpu.series").read_text())
    recording = sampler.stop()
    assert recording.missing is None
    assert recording.facts["driver"] == "580.00.stub"
    assert recording.facts["gpus"][0]["missing"] == {}
    energy = rows_of(recording, "energy")
    assert energy == sorted(energy)
    assert set(rows_of(recording, "gpu_util")) == {0.9}
    assert set(rows_of(recording, "sm_active")) == {0.02}
    assert len(rows_of(recording, "power_call")) == len(rows_of(recording, "power"))
    notes = " | ".join(recording.notes)
    assert "sampler used" in notes
    assert "behind their instant" in notes


def test_a_gpu_that_is_lost_in_the_middle_of_a_run_is_a_note_and_no_exception(
    driver, plan, target, tmp_path, eventually
):
    plan(FAIL="nvmlDeviceGetPowerUsage=15@3")
    sampler = GpuSampler(rate_hz=50.0)
    sampler.start(target)
    eventually(lambda: (tmp_path / "gpu.series").read_text().count("@") >= 40)
    recording = sampler.stop()
    assert (recording.missing, len(rows_of(recording, "power"))) == (None, 2)
    assert any("the GPU is lost: it fell off the bus" in note for note in recording.notes)
    assert len(rows_of(recording, "lateness")) > 3  # the sampler itself went on


def test_a_sampler_that_was_killed_leaves_its_rows_and_says_so(driver, target):
    sampler = GpuSampler()
    sampler.start(target)
    os.kill(sampler._child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sampler._child.pid, os.WEXITED | os.WNOWAIT)
    recording = sampler.stop()
    assert rows_of(recording, "power") == [650.0]
    assert recording.missing == "the sampler ended early with exit code -9; rows end there"


def test_without_the_library_nothing_is_started_and_the_reason_is_one_line(target, tmp_path, monkeypatch):
    monkeypatch.setattr("perfkit.measuring.collectors.nvml.library.LIBRARY", "libnvidia-ml.so.of-nobody")
    sampler = GpuSampler()
    with pytest.raises(CollectorUnavailable, match=r"^not recorded: no libnvidia-ml\.so\.1 here; install .*$"):
        sampler.start(target)
    assert list(tmp_path.iterdir()) == []


def test_of_several_gpus_only_the_targets_own_is_recorded_and_known_by_its_uuid(driver, plan, target):
    plan(GPUS=3)
    sampler = GpuSampler()
    sampler.start(dataclasses.replace(target, gpu_uuid="00000000-0000-0000-0000-000000000005"))
    recording = sampler.stop()
    assert [(gpu["name"], gpu["index"]) for gpu in recording.facts["gpus"]] == [("Stub H202", 2)]


def test_a_library_that_brings_its_process_down_costs_the_run_nothing_but_its_rows(driver, plan, target):
    plan(FAIL="nvmlDeviceGetPowerUsage=-11")  # it raises SIGSEGV
    with pytest.raises(CollectorUnavailable, match=r"the sampler process ended with signal 11 before its first look"):
        GpuSampler().start(target)


def test_a_driver_that_is_not_loaded_is_one_line_too(driver, plan, target):
    plan(FAIL="nvmlInitWithFlags=9")
    with pytest.raises(
        CollectorUnavailable, match=r"^the driver is not loaded; load it, .*\(NVML 9, Driver Not Loaded\)"
    ):
        GpuSampler().start(target)


def test_a_gpu_without_gaps_needs_no_words_and_fields_with_one_reason_share_a_line():
    plain = {"name": "H200", "uuid": "GPU-7", "lost": None, "missing": {}, "failed": {}}
    assert describe(plain) == []
    counts = {"failures": 2, "readings": 8, "reason": "late"}
    gaps = {"missing": {"power": "old", "gpm": "old", "pcie": "shut"}, "failed": {"energy": counts}, "lost": "gone"}
    assert describe(plain | gaps) == [
        "H200 (GPU-7): gone; rows end there",
        "H200 (GPU-7): power, gpm not available: old",
        "H200 (GPU-7): pcie not available: shut",
        "H200 (GPU-7): energy failed 2 times beside 8 readings: late",
    ]
