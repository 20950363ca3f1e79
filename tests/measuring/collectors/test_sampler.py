"""Is the sampler a process of its own that leaves a whole file however it ends?"""

import os
import signal
import threading

import pytest

from perfkit.errors import CollectorUnavailable
from perfkit.measuring.collectors.collector import Target
from perfkit.measuring.collectors.sampler import SystemSampler

# The burner of the story holds the CPU all the time, the napper hardly ever.


def cpu_by_thread(recording):
    first, last = {}, {}
    for row in recording.series:
        if row.source.startswith("thread:") and row.name == "cpu":
            first.setdefault(row.source, row.value)
            last[row.source] = row.value
    return {source: last[source] - first[source] for source in last}


def test_a_running_process_gets_rows_from_start_to_stop_and_the_sampler_says_what_it_cost(start_python, tmp_path):
    child = start_python()
    sampler = SystemSampler(rate_hz=20.0)
    sampler.start(Target(pid=child.pid, folder=tmp_path, thread_names={child.pid: "main"}))
    threading.Event().wait(0.5)
    recording = sampler.stop()
    assert recording.missing is None
    assert recording.files == (tmp_path / "system.series",)
    spent = cpu_by_thread(recording)
    assert len(spent) == 3
    assert spent[f"thread:{child.pid}:main"] < max(spent.values())
    assert len({row.time_ns for row in recording.series}) > 5
    assert {"process", "host", "core:0", "sampler"} <= {row.source for row in recording.series}
    assert any("sampler used" in note for note in recording.notes)


def test_the_rows_up_to_the_end_of_the_target_stay(start_python, tmp_path):
    child = start_python()
    sampler = SystemSampler(rate_hz=50.0)
    sampler.start(Target(pid=child.pid, folder=tmp_path))
    child.kill()
    child.wait()
    recording = sampler.stop()
    assert recording.series
    assert recording.missing is None
    assert "the target ended first" in recording.notes


def test_a_sampler_that_was_killed_leaves_its_rows_and_says_so(start_python, tmp_path):
    child = start_python()
    sampler = SystemSampler(rate_hz=50.0)
    sampler.start(Target(pid=child.pid, folder=tmp_path))
    os.kill(sampler._child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sampler._child.pid, os.WEXITED | os.WNOWAIT)
    recording = sampler.stop()
    assert recording.series
    assert recording.missing == "the sampler ended early with exit code -9; rows end there"


def test_a_process_that_is_not_there_makes_the_collector_unavailable(tmp_path):
    with pytest.raises(CollectorUnavailable, match=r"process 1073741824 is not running .* live process on Linux"):
        SystemSampler().start(Target(pid=1 << 30, folder=tmp_path))


def test_a_sampler_that_cannot_write_says_what_happened_and_where_to_look(start_python, tmp_path):
    child = start_python()
    (tmp_path / "system.series").mkdir()
    with pytest.raises(CollectorUnavailable, match=r"did not start \(.*Is a directory.*see .*system\.log"):
        SystemSampler().start(Target(pid=child.pid, folder=tmp_path))
