"""Does py-spy record what threads really do, and is it explained when it cannot?"""

import json
import sys

import pytest

from perfkit.clock import REAL_CLOCK
from perfkit.errors import CollectorUnavailable, ConfigError
from perfkit.measuring.collectors import pyspy
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.collectors.pyspy import MODES, PySpy, explain_failure, find_pyspy, record_stacks
from perfkit.measuring.collectors.stacks import folded

# What py-spy 0.4.3 says, word for word.
DENIED = "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'\n"
DENIED_WITHOUT_CAPABILITY = (
    "Error: Failed to get process executable name. Check that the process is running.\n\n"
    "Caused by:\n    0: Permission denied (os error 13)\n    1: Permission denied (os error 13)\n"
)
GONE = (
    "Error: Failed to get process executable name. Check that the process is running.\n\n"
    "Caused by:\n    0: No such file or directory (os error 2)\n"
)
NO_PYTHON = "Error: Failed to find python version from target process\n"
SAMPLING = "py-spy> Sampling process 100 times a second. Press Control-C to exit.\n\n"


@pytest.fixture
def fake_pyspy(monkeypatch, tmp_path):
    """A py-spy that says what it is told to and exits with 1."""

    def install(words):
        script = tmp_path / "py-spy"
        script.write_text(f"#!{sys.executable}\nprint({words!r}, end='')\nraise SystemExit(1)\n")
        script.chmod(0o755)
        monkeypatch.setattr(pyspy, "find_pyspy", lambda: str(script))

    return install


def test_each_mode_sees_what_it_is_for(start_python, tmp_path):
    child = start_python()
    leaves = {}
    for mode in MODES:
        path = record_stacks(child.pid, 0.6, mode, 100, tmp_path)
        stacks = json.loads(path.read_text())
        assert path == tmp_path / "stacks" / f"{mode}.json"
        assert (stacks["schema"], stacks["mode"], stacks["rate_hz"]) == (1, mode, 100)
        assert stacks["sample_count"] == len(stacks["samples"]["stack"]) == len(stacks["samples"]["thread"])
        assert stacks["profiler_cpu_s"] is not None
        assert (stacks["samples"]["time_ns"] is not None) == (mode == "idle")
        leaves[mode] = {line.partition(" ")[0] for line in folded(stacks)}
    assert "burner" in leaves["default"] & leaves["idle"] & leaves["gil"]
    assert {"napper", "MainThread"} <= leaves["idle"]
    assert "MainThread" not in leaves["default"] | leaves["gil"]
    assert list((tmp_path / "stacks").glob("*.pyspy")) == []


def test_a_thread_that_runs_a_quarter_of_the_time_is_not_filled_up_to_the_whole(start_python, tmp_path):
    story = (
        "import time; print('up', flush=True)\n"
        "while True:\n"
        "    end = time.monotonic() + 0.05\n"
        "    while time.monotonic() < end: pass\n"
        "    time.sleep(0.15)\n"
    )
    path = record_stacks(start_python(story).pid, 1.5, "default", 100, tmp_path)
    stacks = json.loads(path.read_text())
    seen_ratio = stacks["sample_count"] / (stacks["seconds"] * stacks["rate_hz"])
    assert 0.1 < seen_ratio < 0.5


def test_times_of_an_idle_recording_lie_inside_it_on_the_hosts_clock(start_python, tmp_path):
    child = start_python()
    before_ns = REAL_CLOCK.now_ns()
    times = json.loads(record_stacks(child.pid, 0.5, "idle", 100, tmp_path).read_text())["samples"]["time_ns"]
    assert before_ns < times[0] < times[-1] < REAL_CLOCK.now_ns()


def test_a_target_that_ends_leaves_what_was_recorded_and_a_note(start_python, tmp_path):
    child = start_python()
    collector = PySpy("idle")
    collector.start(Target(pid=child.pid, folder=tmp_path))
    collector.wait(0.3)
    child.kill()
    child.wait()
    collector.wait(10)
    recording = collector.stop()
    assert recording.missing is None
    assert recording.notes[-1] == "the target ended before the recording did"
    assert json.loads(recording.files[0].read_text())["sample_count"] > 0


def test_a_process_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CollectorUnavailable, match="process 1073741824 is not running; give the id of a live process"):
        record_stacks(1 << 30, 0.1, "default", 100, tmp_path)


@pytest.mark.parametrize("words", [DENIED, DENIED_WITHOUT_CAPABILITY])
def test_a_refused_attach_says_what_to_allow(fake_pyspy, tmp_path, words):
    fake_pyspy(words)
    with pytest.raises(CollectorUnavailable, match=r"may not read process 7: permission denied.*capability SYS_PTRACE"):
        PySpy().start(Target(pid=7, folder=tmp_path))


def test_the_kernels_ptrace_scope_is_part_of_the_reason(plant):
    root = plant({"proc/sys/kernel/yama/ptrace_scope": "1\n"})
    assert "(kernel.yama.ptrace_scope is 1)" in explain_failure(DENIED, 7, root)


def test_other_failures_are_told_apart():
    assert explain_failure(GONE, 7) == "process 7 is not running; give the id of a live process"
    assert explain_failure(NO_PYTHON, 7).startswith("process 7 is no Python interpreter that py-spy can read")
    assert explain_failure("Error: bad moon\n", 7) == (
        "py-spy could not watch process 7: bad moon; try `py-spy dump --pid 7` to see why"
    )
    assert "no message" in explain_failure("", 7)


def test_a_pyspy_that_dies_while_sampling_leaves_a_gap_with_its_last_words(fake_pyspy, tmp_path):
    fake_pyspy(SAMPLING + "Error: disk full\n")
    collector = PySpy("gil")
    collector.start(Target(pid=7, folder=tmp_path))
    collector.wait(10)
    recording = collector.stop()
    assert recording.files == ()
    assert recording.missing.startswith("py-spy ended without a recording; it said: ")
    assert recording.missing.endswith("Error: disk full")


def test_a_missing_pyspy_is_an_unavailable_collector_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorUnavailable, match=r"py-spy is neither beside .* nor on PATH; install it with: pip"):
        find_pyspy()


def test_the_pyspy_beside_the_interpreter_comes_before_the_one_on_path(monkeypatch, tmp_path):
    for folder in ("beside", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "py-spy").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    assert find_pyspy() == str(tmp_path / "beside" / "py-spy")
    (tmp_path / "beside" / "py-spy").unlink()
    assert find_pyspy() == str(tmp_path / "path" / "py-spy")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigError, match="mode is 'native'; it takes one of default, idle, gil"):
        PySpy("native")
