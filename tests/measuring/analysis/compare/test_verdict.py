"""Does a comparison say faster, slower, no difference or inconclusive when it should?"""

import dataclasses

import pytest

from perfkit.measuring.analysis.compare.replicate import METRICS
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates, overall
from perfkit.measuring.analysis.compare.wording import claim_of, describe

PAIRS = 10


@pytest.fixture
def judged(replicates):
    """Verdict overall and by metric of quiet runs against others that are factors away."""

    def judge(spread=0.005, pairs=PAIRS, is_paired=True, **factors):
        a, b = replicates(pairs, 1, spread), replicates(pairs, 2, spread, factors)
        found = compare_replicates(a, b, is_paired, Rule())
        return found.verdict, [one.verdict for one in found.metrics]

    return judge


@pytest.mark.parametrize("is_paired", [True, False])
def test_a_planted_change_is_found_in_its_metric_and_its_direction(judged, is_paired):
    same = "no difference"
    assert judged(is_paired=is_paired) == (same, [same, same, same, None])
    assert judged(is_paired=is_paired, throughput_rps=0.95) == ("slower", ["slower", same, same, None])
    assert judged(is_paired=is_paired, throughput_rps=1.05) == ("faster", ["faster", same, same, None])
    assert judged(is_paired=is_paired, p95_s=1.1) == ("slower", [same, same, "slower", None])
    assert judged(is_paired=is_paired, p95_s=0.9) == ("faster", [same, same, "faster", None])


def test_a_gain_here_and_a_loss_there_is_mixed(judged):
    assert judged(throughput_rps=1.2, p95_s=1.2)[0] == "mixed"


def test_a_change_below_the_margin_is_no_alarm_however_sure_it_is(judged):
    assert judged(spread=0.001, throughput_rps=0.98) == ("no difference", ["no difference"] * 3 + [None])


def test_noise_gives_no_verdict(judged):
    assert judged(spread=0.2) == ("inconclusive", ["inconclusive"] * 3 + [None])


def test_too_few_pairs_give_no_verdict_even_for_a_large_change(judged):
    assert judged(pairs=6, throughput_rps=0.5)[0] == "inconclusive"
    assert judged(pairs=7, throughput_rps=0.5)[0] == "slower"


def test_twice_the_noise_floor_of_a_is_what_an_alarm_takes_where_it_exceeds_the_margin(replicates):
    found = compare_replicates(replicates(PAIRS, 1, 0.1), replicates(PAIRS, 2, 0.1), True, Rule())
    for one in found.judged:
        assert one.threshold_ratio == 2 * one.noise_floor_ratio > 0.03


def test_a_void_run_takes_its_pair_along_and_is_counted(replicates, void):
    a, b = replicates(PAIRS, 1), replicates(PAIRS, 2)
    found = compare_replicates([void, *a], [b[0], *b], True, Rule())
    assert found.counted == (PAIRS, PAIRS + 1)
    assert [(one.shift.runs_a, one.missing) for one in found.judged] == [(PAIRS, 2)] * 3
    alone = compare_replicates([void, *a], [b[0], *b], False, Rule())
    assert [(one.shift.runs_a, one.shift.runs_b) for one in alone.judged] == [(PAIRS, PAIRS + 1)] * 3


def test_nothing_but_void_runs_is_void(void):
    found = compare_replicates([void] * 3, [void] * 3, True, Rule())
    assert (found.verdict, found.judged) == ("void", ())
    assert claim_of(found, ("old", "new"), False).startswith("void: no run of one side counts")


def test_p99_is_judged_only_where_most_runs_have_it(replicates):
    def with_tail(runs, having):
        return [
            dataclasses.replace(run, values={**run.values, "p99_s": 0.03 if place < having else None})
            for place, run in enumerate(runs)
        ]

    a, b = replicates(PAIRS, 1), replicates(PAIRS, 2)
    few = compare_replicates(with_tail(a, 4), with_tail(b, 4), True, Rule())
    most = compare_replicates(with_tail(a, 8), with_tail(b, 8), True, Rule())
    assert [one.metric.title for one in few.judged] == ["throughput", "P50", "P95"]
    assert [one.metric.title for one in most.judged] == ["throughput", "P50", "P95", "P99"]
    assert most.metrics[3].missing == 4
    assert (few.metrics[0].confidence_ratio, most.metrics[0].confidence_ratio) == (1 - 0.05 / 3, 1 - 0.05 / 4)


def test_who_fails_more_requests_is_slower(replicates):
    a, b = replicates(PAIRS, 1, 0.005), replicates(PAIRS, 2, 0.005, error_ratio=0.02)
    found = compare_replicates(a, b, True, Rule())
    assert found.verdict == "slower"
    assert describe(found, Rule())[-1] == "failed requests: 0 % of A's, 2.00 % of B's"
    assert overall(["faster"], (0.0, 0.02), 5) == "mixed"


def test_only_the_metrics_asked_for_are_judged(replicates):
    rule = Rule(metrics=METRICS[:1])
    found = compare_replicates(replicates(PAIRS, 1), replicates(PAIRS, 2, factors={"p95_s": 2.0}), True, rule)
    assert [one.metric.title for one in found.metrics] == ["throughput"]
    assert found.metrics[0].confidence_ratio == 0.95


def test_a_claim_says_what_of_what_by_how_much_and_how_sure(replicates):
    a, b = replicates(PAIRS, 1, 0.005), replicates(PAIRS, 2, 0.005, {"throughput_rps": 0.9})
    found = compare_replicates(a, b, True, Rule())
    claim = claim_of(found, ("workers=2", "workers=4"), True)
    assert claim.startswith(
        "slower: workers=4 against workers=2 (simulated); throughput 99.8 req/s → 89.9 req/s (-10.1 %"
    )
    assert claim.endswith("98.3 % interval -10.5 to -9.60 %, 10 pairs)")
    lines = describe(found, Rule())
    assert "would be found in 80 % of such comparisons" in lines[0]
    assert lines[3] == "not judged: P99 has no value in 20 of 20 runs"
