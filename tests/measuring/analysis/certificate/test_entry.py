"""A certificate's grade follows from its failed entries, and it reads as plain JSON."""

import json

from perfkit.measuring.analysis.certificate import Certificate, Entry
from perfkit.measuring.analysis.certificate.entry import not_applicable, recorded
from perfkit.measuring.analysis.grading import Grade


def entry(status, costs, reason=""):
    return Entry(
        name="Little",
        status=status,
        figures={"residual_ratio": 0.1},
        threshold=0.02,
        origin="Little 1961",
        costs=costs,
        reason=reason,
    )


def test_the_worst_failure_decides_and_all_reasons_are_kept_the_worst_first():
    failed = (entry("fail", "short", "s"), entry("fail", "void", "v"), entry("fail", "unsteady", "u"))
    assert Certificate(entries=failed).grade == Grade(label="void", reasons=("v", "u", "s"))
    assert Certificate(entries=failed[:1]).grade == Grade(label="short", reasons=("s",))


def test_what_passed_is_recorded_or_does_not_apply_costs_nothing():
    entries = (entry("pass", "void"), recorded("pressure", {}, "o", "flagged"), not_applicable("x", "o", "void", "why"))
    assert Certificate(entries=entries).grade == Grade(label="sound", reasons=())


def test_json_counts_the_statuses_and_keeps_every_field():
    document = Certificate(entries=(entry("fail", "void", "v"), recorded("machine", {"governor": None}, "o"))).to_json()
    assert (document["grade"], document["counts"]) == (
        "void",
        {"pass": 0, "fail": 1, "recorded": 1, "not applicable": 0},
    )
    assert document["entries"][0] == {
        "name": "Little",
        "status": "fail",
        "figures": {"residual_ratio": 0.1},
        "threshold": 0.02,
        "origin": "Little 1961",
        "costs": "void",
        "reason": "v",
    }
    assert json.loads(json.dumps(document, allow_nan=False)) == document
