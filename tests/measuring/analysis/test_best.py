"""The recommendation: budget, basis, ties and words."""

import pytest

from perfkit.measuring.analysis.best import choose_best

LATENCY = {"n": 1000, "n_eff": 500.0}


def level(value, high=None, needs_s=None):
    shown = None if needs_s else value
    return {
        "value": shown,
        "low": value * 0.9,
        "high": None if needs_s else high or value * 1.1,
        "needs_s": needs_s,
        **LATENCY,
    }


def point(workers, rate_rps, p99_s, grade="sound", needs_s=None, half=2.0, **more):
    return {
        "settings": {"workers": workers, "batch": {"max_size": 1}},
        "varied": {"workers": workers},
        "load": {"loop": "closed", "concurrency": 16},
        "throughput_rps": {"value": rate_rps, "low": rate_rps - half, "high": rate_rps + half},
        "latency_s": {"p50": level(p99_s / 2), "p95": level(p99_s * 0.8), "p99": level(p99_s, needs_s=needs_s)},
        "error_ratio": 0.0,
        "grade": grade,
        **more,
    }


def workers_of(best):
    return best["settings"]["workers"], best["basis"]


def test_the_most_throughput_wins_without_a_budget():
    best = choose_best([point(1, 50, 0.1), point(2, 90, 0.2), point(4, 80, 0.4)])
    assert workers_of(best) == (2, "p99")
    assert best["varied"] == {"workers": 2}
    assert (
        best["reason"] == "workers 2: 90.0 req/s (88.0 to 92.0 req/s) in a closed loop of 16 users, P99 at most 220 ms."
    )


def test_the_upper_end_of_p99_must_keep_the_budget():
    points = [point(1, 50, 0.1), point(2, 90, 0.19)]
    assert workers_of(choose_best(points, p99_s=0.2)) == (1, "p99")  # 0.19 s may be 0.209 s
    assert workers_of(choose_best(points, p99_s=0.21)) == (2, "p99")
    assert "(budget 210 ms)" in choose_best(points, p99_s=0.21)["reason"]


def test_no_setting_inside_the_budget_gives_none():
    assert choose_best([point(1, 50, 0.1)], p99_s=0.05) is None
    assert choose_best([]) is None


@pytest.mark.parametrize("grade", ["void", "unsteady"])
def test_void_and_unsteady_points_are_passed_over(grade):
    assert workers_of(choose_best([point(1, 50, 0.1), point(2, 90, 0.2, grade=grade)])) == (1, "p99")


def test_points_that_fail_requests_are_passed_over():
    assert workers_of(choose_best([point(1, 50, 0.1), point(2, 90, 0.2, error_ratio=0.02)])) == (1, "p99")


def test_an_unknown_p99_of_a_point_that_could_win_makes_p95_decide_and_says_so():
    best = choose_best([point(1, 50, 0.1), point(2, 90, 0.2, needs_s=43.0)], p99_s=0.3)
    assert workers_of(best) == (2, "p95")
    assert (
        "P99 is not known at 1 of 2 points (it needs up to 43.0 s a point), so P95 stands in for it." in best["reason"]
    )


def test_an_unknown_p99_that_cannot_win_does_not_matter():
    slow_rate = [point(1, 30, 0.1, needs_s=43.0), point(2, 90, 0.2)]
    too_slow = [point(1, 50, 0.1), point(2, 90, 0.9, needs_s=43.0)]
    assert workers_of(choose_best(slow_rate, p99_s=0.3)) == (2, "p99")
    assert workers_of(choose_best(too_slow, p99_s=0.3)) == (1, "p99")


def test_a_tie_goes_to_the_cheaper_setting_with_the_numbers():
    best = choose_best([point(8, 101, 0.1), point(2, 99, 0.1), point(4, 100, 0.1)])
    assert workers_of(best) == (2, "p99")
    assert best["reason"].endswith(
        "workers 8 gives 101 req/s (99.0 to 103 req/s), which is not more within the noise, and takes more workers."
    )


def test_a_wide_interval_does_not_make_a_much_lower_rate_a_tie():
    assert workers_of(choose_best([point(1, 80, 0.1, half=40.0), point(4, 110, 0.1)])) == (4, "p99")


def test_an_open_loop_is_named():
    best = choose_best([point(1, 50, 0.1, load={"loop": "open", "rate_rps": 50.0})])
    assert "in an open loop at 50.0 req/s" in best["reason"]


def test_among_equals_in_price_the_faster_answer_wins():
    slow, fast = point(2, 100, 0.3), point(2, 99, 0.1)
    best = choose_best([slow | {"varied": {"batch.max_delay_s": 0.1}}, fast | {"varied": {"batch.max_delay_s": 0.0}}])
    assert best["varied"] == {"batch.max_delay_s": 0.0}
    assert best["reason"].endswith("and answers later.")


def test_where_p95_is_unknown_as_well_throughput_alone_decides_and_the_reason_says_so():
    unknown = point(2, 90, 0.2, needs_s=43.0)
    unknown["latency_s"]["p95"] = level(0.15, needs_s=8.0)
    best = choose_best([unknown])
    assert workers_of(best) == (2, "p95")
    assert "P95 unknown" in best["reason"]
    assert choose_best([unknown], p99_s=1.0) is None
