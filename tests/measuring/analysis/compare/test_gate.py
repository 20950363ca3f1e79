"""Does the gate stop a regression, let through what is no worse, and say when it cannot tell?"""

import pytest

from perfkit.measuring.analysis.compare.gate import gate
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates


@pytest.fixture
def answer(replicates):
    """What the gate says of a candidate that is factors away."""

    def ask(spread=0.005, worse_than=0.05, runs=10, errors=0.0, **factors):
        a, b = replicates(runs, 1, spread), replicates(runs, 2, spread, factors, error_ratio=errors)
        found = gate(compare_replicates(a, b, False, Rule(margin_ratio=worse_than)), worse_than)
        return found.answer, [line.result for line in found.lines]

    return ask


def test_the_same_service_passes(answer):
    assert answer() == ("passed", ["passed"] * 3)


def test_a_loss_beyond_the_allowance_fails_in_its_metric(answer):
    assert answer(throughput_rps=0.9) == ("regression", ["failed", "passed", "passed"])
    assert answer(p95_s=1.1) == ("regression", ["passed", "passed", "failed"])


def test_a_loss_within_the_allowance_passes_even_when_it_is_sure(answer):
    assert answer(throughput_rps=0.98) == ("passed", ["passed"] * 3)
    assert answer(throughput_rps=0.98, worse_than=0.01)[0] == "regression"


def test_a_gain_passes_however_large(answer):
    assert answer(throughput_rps=2.0, p50_s=0.5, p95_s=0.5) == ("passed", ["passed"] * 3)


def test_noise_is_neither_passed_nor_failed(answer):
    assert answer(spread=0.2)[0] == "inconclusive"
    assert answer(runs=3) == ("inconclusive", ["open"] * 3)


def test_a_candidate_that_fails_requests_is_a_regression(answer):
    assert answer(errors=0.05) == ("regression", ["passed"] * 3)


def test_nothing_but_void_runs_is_void(void):
    found = gate(compare_replicates([void], [void], False, Rule()))
    assert (found.answer, found.lines) == ("void", ())
