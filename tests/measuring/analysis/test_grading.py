"""Four grades and their reasons."""

import dataclasses

from perfkit.measuring.analysis.grading import Grade, grade, shortfall_text
from perfkit.measuring.analysis.latency import Quantile

SHORT = Quantile(value=None, low=0.09, high=None, n=900, n_eff=212.4, needs_s=14.0)


def test_the_worst_grade_wins_and_keeps_all_reasons():
    assert grade((), (), ()) == Grade(label="sound", reasons=())
    assert grade((), (), ("s",)) == Grade(label="short", reasons=("s",))
    assert grade((), ("u",), ("s",)) == Grade(label="unsteady", reasons=("u", "s"))
    assert grade(("v",), ("u",), ()) == Grade(label="void", reasons=("v", "u"))


def test_a_short_quantile_says_what_it_needs():
    text = "P99 needs about 14.0 s of measuring: 212 effective of 900 requests, 473 are the floor"
    assert shortfall_text("p99", SHORT) == text


def test_a_floor_that_is_reached_leaves_the_queue_as_the_reason():
    relaxing = dataclasses.replace(SHORT, n_eff=600.0, needs_s=269.0)
    text = "P99 needs about 4 min 29 s of measuring: 300 relaxation times of the queue"
    assert shortfall_text("p99", relaxing) == text
