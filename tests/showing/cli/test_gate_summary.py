"""Does a build server get the gate's answer as a sentence, a table and JUnit's XML?"""

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from perfkit.measuring.analysis.compare.gate import gate
from perfkit.measuring.analysis.compare.replicate import Replicate
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.showing.cli.gate_summary import claim, junit, line_text, markdown

RUN = Replicate(
    run_id="made",
    created="2026-01-01T00:00:00+00:00",
    grade="sound",
    reasons=(),
    requests=100,
    values={"throughput_rps": 100.0, "p50_s": 0.01, "p95_s": 0.02, "p99_s": None},
    error_ratio=0.0,
    stolen_ratio=None,
    load_average=None,
)


@pytest.fixture
def judged():
    """A gate and its comparison: a candidate whose figures are as given, and that fails so many requests."""

    def judge(errors=0.0, **values):
        candidate = dataclasses.replace(RUN, values=RUN.values | values, error_ratio=errors)
        a, b = (RUN,) * 8, (candidate,) * 8
        rule = Rule(margin_ratio=0.05)
        comparison = Comparison(
            labels=("main|x", "<change>"),
            simulated=False,
            findings=compare_replicates(a, b, True, rule),
            rule=rule,
            runs_a=a,
            runs_b=b,
            notes=("a | note <i>",),
            folders=(Path("it"),),
        )
        return gate(comparison.findings, 0.05), comparison

    return judge


def test_a_regression_is_told_with_its_figures_and_the_allowance(judged):
    found, comparison = judged(throughput_rps=80.0)
    assert claim(found, comparison).startswith("regression: throughput 100 req/s → 80.0 req/s (-20.0 %, ")
    assert claim(found, comparison).endswith("8 pairs), 5.00 % is allowed")
    assert line_text(found.lines[0], found) == (
        "failed: throughput may be worse by up to 20.0 % (estimate: 20.0 % worse), 5.00 % is allowed"
    )


def test_the_table_has_a_row_a_metric_and_names_cannot_break_it(judged):
    page = markdown(*judged(p95_s=0.03))
    assert "| P95 | 20.0 ms | 30.0 ms | +50.0 % | +50.0 to +50.0 % | failed |" in page
    assert "| throughput | 100 req/s | 100 req/s | 0 % | 0 to 0 % | passed |" in page
    assert "- a \\| note &lt;i>" in page


def test_junit_counts_what_failed_and_what_passed(judged):
    suite = ElementTree.fromstring(junit(*judged(throughput_rps=80.0)))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "0")
    results = {case.get("name"): [child.tag for child in case] for case in suite}
    assert results == {"throughput": ["failure"], "P50": [], "P95": [], "failed requests": []}


def test_failing_requests_alone_are_a_regression(judged):
    found, comparison = judged(errors=0.1)
    assert claim(found, comparison) == "regression: more requests fail than with the baseline"
    suite = ElementTree.fromstring(junit(found, comparison))
    assert suite.get("failures") == "1"


def test_a_candidate_that_is_no_worse_passes(judged):
    assert claim(*judged()) == "passed: nothing is worse by 5.00 % or more"
