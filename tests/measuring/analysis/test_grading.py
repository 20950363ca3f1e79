"""Four grades and their reasons."""

import dataclasses

from perfkit.measuring.analysis.grading import Grade, describe_shortfalls, grade
from perfkit.measuring.analysis.latency import Quantile

GOOD = Quantile(value=0.1, low=0.09, high=0.11, n=900, n_eff=600.0, needs_s=None)
SHORT = Quantile(value=None, low=0.09, high=None, n=900, n_eff=212.4, needs_s=14.0)


def test_the_worst_grade_wins_and_keeps_all_reasons():
    assert grade((), (), ()) == Grade(label="sound", reasons=())
    assert grade((), (), ("s",)) == Grade(label="short", reasons=("s",))
    assert grade((), ("u",), ("s",)) == Grade(label="unsteady", reasons=("u", "s"))
    assert grade(("v",), ("u",), ()) == Grade(label="void", reasons=("v", "u"))


def test_a_short_run_says_what_it_needs():
    found = describe_shortfalls({"p50": GOOD, "p99": SHORT}, warmup_judged=True)
    assert found == ("P99 needs about 14.0 s of measuring: 212 effective of 900 requests, 473 are the floor",)


def test_rounds_too_short_to_see_the_warm_up_are_short():
    assert len(describe_shortfalls({"p50": GOOD}, warmup_judged=False)) == 1


def test_a_floor_that_is_reached_leaves_the_queue_as_the_reason():
    relaxing = dataclasses.replace(SHORT, n_eff=600.0, needs_s=269.0)
    assert describe_shortfalls({"p99": relaxing}, warmup_judged=True) == (
        "P99 needs about 4 min 29 s of measuring: 300 relaxation times of the queue",
    )
