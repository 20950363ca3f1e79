"""Does the sampler read on a clock, stop when told, and end with its target?"""

import os

from perfkit.clock import ManualClock
from perfkit.measuring.collectors.process import Spec, find_start, sample
from perfkit.measuring.collectors.series import read_series

MS = 1_000_000


def spec(tmp_path, pid):
    return Spec(pid=pid, path=str(tmp_path / "system.series"), rate_hz=5.0, niceness=0, thread_names={pid: "main"})


def test_a_spec_survives_its_file(tmp_path):
    wanted = spec(tmp_path, 7)
    assert Spec.from_json(wanted.to_json()) == wanted


def test_readings_keep_to_the_grid_after_a_late_one_and_end_with_one_more_at_the_stop(tmp_path):
    clock, waits = ManualClock(start_ns=1_000), []

    def wait_for_stop(nanoseconds):
        waits.append(nanoseconds)
        clock.advance(nanoseconds + (30 * MS if len(waits) == 2 else 0))
        return len(waits) == 4

    sample(spec(tmp_path, os.getpid()), clock, wait_for_stop, announce=lambda: None)
    rows = read_series(tmp_path / "system.series")
    assert waits == [200 * MS, 200 * MS, 170 * MS, 200 * MS]
    times = sorted({row.time_ns for row in rows})
    assert times == [1_000 + offset * MS for offset in (0, 200, 430, 600, 800)]
    assert {row.source for row in rows} >= {f"thread:{os.getpid()}:main", "process", "core:0", "sampler"}


def test_nothing_is_read_of_a_process_that_is_not_there(tmp_path):
    sample(spec(tmp_path, 1 << 30), ManualClock(), wait_for_stop=lambda _: False, announce=lambda: None)
    assert read_series(tmp_path / "system.series") == []


def test_a_process_is_known_by_its_start_and_a_zombie_has_ended(plant):
    tail = "1 5 5 0 -1 0 3751 0 6 0 153 21 0 0 20 0 4 0 68418 254525440 5728"
    root = plant({"proc/5/stat": f"5 (python) S {tail}", "proc/6/stat": f"6 (python) Z {tail}"})
    assert [find_start(pid, root) for pid in (5, 6, 7)] == [68418, None, None]
