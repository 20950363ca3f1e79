"""Does a certificate read as a badge: every entry with its figures in units, old points too, markup as text?"""

import re

from perfkit.showing.report.badge import Badge, Line, badge_html, badge_of

ENTRY = {
    "name": "Little",
    "status": "fail",
    "figures": {"residual_ratio": 0.0412},
    "threshold": 0.02,
    "origin": "Little 1961",
    "costs": "void",
    "reason": "Little: 8.00 in flight by the gauge",
}
LENGTH = {
    "name": "run length",
    "status": "pass",
    "figures": {"relaxation_times": 412.0, "relaxation_s": 0.0412, "needs_s": None},
    "threshold": 300.0,
    "origin": "M/M/1",
    "costs": "short",
    "reason": "",
}
MACHINE = {
    "name": "machine",
    "status": "recorded",
    "figures": {"governor": "powersave", "load_average": None},
    "threshold": None,
    "origin": "recorded",
    "costs": "nothing",
    "reason": "",
}
CHECKS = [
    {"name": "little", "passed": True, "figure": 0.0041, "threshold": 0.02, "origin": "Little", "reason": ""},
    {"name": "lateness", "passed": False, "figure": 0.031, "threshold": 0.002, "origin": "judgement", "reason": "late"},
    {"name": "gauge", "passed": None, "figure": None, "threshold": 0.02, "origin": "Little", "reason": "no gauge"},
]


def test_entries_read_with_their_units_limits_and_costs():
    point = {"grade": "void", "certificate": {"entries": [ENTRY, LENGTH, MACHINE]}}
    note = "8.00 in flight by the gauge. Little 1961"
    assert badge_of(point) == Badge(
        grade="void",
        summary="1 fail, 1 pass, 1 recorded",
        lines=(
            Line(name="Little", status="fail", figures="residual 4.12 %", limit="2.00 %", costs="void", note=note),
            Line(
                name="run length",
                status="pass",
                figures="relaxation times 412, relaxation 41.2 ms",
                limit="300",
                costs="short",
                note="M/M/1",
            ),
            Line(name="machine", status="recorded", figures="governor powersave", limit="–", costs="", note="recorded"),
        ),
    )


def test_a_point_from_before_certificates_shows_its_self_tests():
    badge = badge_of({"grade": "void", "checks": CHECKS})
    assert [(line.name, line.status, line.figures) for line in badge.lines] == [
        ("little", "pass", "0.00410"),
        ("lateness", "fail", "0.0310"),
        ("gauge", "not applicable", "–"),
    ]
    assert badge.summary == "1 fail, 1 pass, 1 not applicable"


def test_a_point_without_any_shows_the_figures_that_it_carries(points):
    badge = badge_of(points["workers"][0])
    assert [(line.name, line.figures, line.status) for line in badge.lines] == [
        ("Little", "0.410 %", "recorded"),
        ("generator lateness", "310 µs", "recorded"),
        ("generator CPU", "4.10 %", "recorded"),
    ]


def test_it_opens_from_a_summary_and_hostile_text_stays_text():
    hostile = {**ENTRY, "name": "<img src=x>", "reason": "<script>alert(1)</script>"}
    page = badge_html(badge_of({"grade": "void", "certificate": {"entries": [hostile]}}))
    assert re.match(r'<details class="certificate"><summary>certificate: void, 1 fail</summary>', page)
    assert "<img" not in page
    assert "<script" not in page
