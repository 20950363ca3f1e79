"""Are single requests of a foreign run graded like our own: sound, short, unsteady or void?"""

import numpy as np

from perfkit.measuring.importers.certificate import certify
from perfkit.measuring.importers.requests import RequestLog


def grade_of(latency_s):
    log = RequestLog()
    for number, value in enumerate(latency_s):
        log.add(number * 10_000_000, int(value * 1e9), False, "")
    (level,) = log.levels()
    return level.grade, level.reasons


def steady(count, seed=3):
    return 0.01 + np.random.default_rng(seed).exponential(0.005, count)


def test_many_independent_requests_of_one_kind_are_sound():
    assert grade_of(steady(5000)) == ("sound", ())


def test_too_few_requests_are_short_and_say_what_it_would_take():
    grade, (reason,) = grade_of(steady(300))
    assert grade == "short"
    assert reason.startswith("P99 needs about ")


def test_latencies_that_grow_through_the_run_are_unsteady():
    grade, reasons = grade_of(steady(3000) * np.linspace(1, 3, 3000))
    assert grade == "unsteady"
    assert any(reason.startswith("P50 differs between thirds of the run by a factor of ") for reason in reasons)


def test_latencies_below_the_clocks_tick_are_no_drift():
    assert grade_of(np.where(np.arange(2000) < 1500, 0.0, 0.001))[0] in ("sound", "unsteady")
    assert grade_of(np.zeros(2000))[0] == "sound"


def test_a_run_without_a_reply_is_void():
    assert certify(np.empty(0), {}).grade.label == "void"
    log = RequestLog()
    log.add_unanswered("a")
    (level,) = log.levels()
    assert (level.grade, level.requests, level.errors) == ("void", 1, 1)


def test_steady_runs_are_rarely_called_unsteady():
    grades = [grade_of(steady(1500, seed))[0] for seed in range(40)]
    assert grades.count("unsteady") <= 2
