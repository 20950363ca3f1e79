"""Does the sleeper measure the wait for the GIL, and not the wait for a core?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfkit.clock import ManualClock
from perfkit.serving.instrument.sleeper import INTERVAL_NS, LEAST_SAMPLES, GilSleeper

CHILD = """
import dataclasses, json, sys, threading
from perfkit.serving.instrument.sleeper import GilSleeper

spinners, interval_s, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
sys.setswitchinterval(interval_s)

def spin():
    while True:
        sum(range(100))

for _ in range(spinners):
    threading.Thread(target=spin, daemon=True).start()
with GilSleeper() as sleeper:
    threading.Event().wait(seconds)
print(json.dumps(dataclasses.asdict(sleeper.summary())))
"""
ROOT = str(Path(__file__).parents[3])


def measure_in_child(spinners, interval_s=0.005, seconds=1.0):
    command = [sys.executable, "-c", CHILD, str(spinners), str(interval_s), str(seconds)]
    return json.loads(subprocess.check_output(command, cwd=ROOT))


class OversleepingClock(ManualClock):
    """Sleeps longer than asked, by the next of some amounts; then tells its sleeper to end."""

    def __init__(self, oversleeps):
        super().__init__()
        self.oversleeps = list(oversleeps)
        self.sleeper = None

    def sleep_until(self, until_ns):
        self.advance(until_ns - self.now_ns() + self.oversleeps.pop(0))
        self.sleeper._is_stopping = not self.oversleeps


def run_on(oversleeps, capacity=1 << 10):
    clock = OversleepingClock(oversleeps)
    clock.sleeper = sleeper = GilSleeper(capacity=capacity, clock=clock)
    sleeper._runqueue_ns = lambda: 0  # the real kernel's figure does not belong to a manual clock
    sleeper.start()
    sleeper._thread.join()
    return sleeper


def test_oversleeps_are_kept_with_the_instant_of_waking():
    assert run_on([5, 7]).samples() == [(INTERVAL_NS + 5, 5), (2 * INTERVAL_NS + 12, 7)]


def test_the_ring_keeps_the_newest():
    assert [oversleep for _, oversleep in run_on([1, 2, 3, 4, 5], capacity=3).samples()] == [3, 4, 5]


def test_quantiles_come_from_a_hundred_samples_on():
    few = run_on(range(LEAST_SAMPLES - 1)).summary()
    assert (few.sample_count, few.p50_s, few.p90_s, few.p99_s) == (99, None, None, None)
    enough = run_on(range(LEAST_SAMPLES)).summary()
    assert (enough.sample_count, enough.p50_s, enough.p90_s, enough.p99_s) == (100, 50e-9, 90e-9, 99e-9)
    assert enough.switch_interval_s == sys.getswitchinterval()


def test_a_summary_may_begin_at_an_instant():
    sleeper = run_on([0] * 99 + [9_000_000] * 100)
    assert sleeper.summary().p50_s == 0.009
    assert sleeper.summary(since_ns=sleeper.samples()[99][0]).sample_count == 100


def test_time_in_the_run_queue_is_taken_off():
    clock = OversleepingClock([50, 50])
    clock.sleeper = sleeper = GilSleeper(clock=clock)
    waited = iter([100, 130, 200])
    sleeper._runqueue_ns = lambda: next(waited)
    sleeper.start()
    sleeper._thread.join()
    assert [oversleep for _, oversleep in sleeper.samples()] == [20, 0]


def test_what_the_thread_dies_of_reaches_its_owner():
    clock = OversleepingClock([])  # has no amount to oversleep by, so its first sleep raises
    broken = GilSleeper(clock=clock)
    broken.start()
    broken._thread.join()
    with pytest.raises(IndexError):
        broken.stop()


def test_the_wait_for_the_gil_tells_a_spinning_thread_from_an_idle_process():
    idle, busy = measure_in_child(spinners=0), measure_in_child(spinners=1, seconds=1.5)
    assert idle["has_runqueue"]
    assert busy["p90_s"] >= 5 * idle["p90_s"]
    assert busy["p90_s"] >= busy["switch_interval_s"] / 2


@pytest.mark.slow
def test_a_tenth_of_the_switch_interval_moves_it():
    usual = measure_in_child(spinners=1, seconds=2.0)
    tenth = measure_in_child(spinners=1, interval_s=0.0005, seconds=2.0)
    assert usual["p90_s"] >= 3 * tenth["p90_s"]


def test_nothing_but_the_standard_library_and_the_clock_is_imported():
    code = "import sys; import perfkit.serving.instrument.sleeper, perfkit.serving.instrument.locks; "
    code += "print({name.split('.')[0] for name in sys.modules} - {'__main__', *sys.stdlib_module_names})"
    output = subprocess.check_output([sys.executable, "-S", "-c", code], cwd=ROOT, text=True)
    assert output == "{'perfkit'}\n"
