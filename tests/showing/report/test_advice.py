"""Is a result said in a sentence that claims no more than was measured?"""

import pytest

from perfkit.showing.report.advice import comparison_verdict, padding_remark, recommendation


def point(rate, spread=0.01, grade="sound", padding=None, size=1):
    """A point by its throughput and how far its interval reaches to either side."""
    throughput = {"value": rate, "low": rate * (1 - spread), "high": rate * (1 + spread)}
    return {
        "throughput_rps": throughput,
        "grade": grade,
        "error_ratio": 0.0,
        "padding_ratio": padding,
        "varied": {"batch.max_size": size},
    }


def void():
    nothing = {"value": None, "low": None, "high": None}
    return point(1.0, grade="void") | {"throughput_rps": nothing}


def test_a_best_point_is_recommended_in_the_words_that_chose_it():
    best = {"settings": {"workers": 2}, "reason": "workers 2: 267 req/s (265 to 269 req/s).", "basis": "p95"}
    assert recommendation(best) == "Recommended: workers 2: 267 req/s (265 to 269 req/s)."


def test_without_one_nothing_is_recommended():
    assert recommendation(None).startswith(
        "No point is fit to be recommended: each is void, unsteady or over its budget"
    )


@pytest.mark.parametrize(
    ("small", "large", "gain"),
    [
        (100.0, 300.0, "still gains"),
        (300.0, 100.0, "loses"),
        (100.0, 101.0, "gains nothing that stands out of the noise"),
    ],
)
def test_much_padding_is_told_with_what_batching_does_in_spite_of_it(small, large, gain):
    curve = [point(small, padding=0.0), point(large, padding=0.58, size=16)]
    assert padding_remark({"mixed lengths": curve}) == (
        f"With mixed lengths, batches of up to 16 are 58.0 % padding; batching {gain}: "
        f"{small:.0f} req/s with a max batch of 1, {large:.0f} req/s with 16."
    )


def test_what_batching_gains_says_when_it_was_not_steady():
    curve = [point(100.0, grade="unsteady"), point(200.0, padding=0.9, size=8)]
    assert "batching still gains, though not in a steady state: 100 req/s" in padding_remark({"mixed": curve})


def test_each_set_of_payloads_gets_its_own_sentence():
    curve = [point(1.0), point(2.0, padding=0.3, size=4)]
    assert padding_remark({"short": curve, "long": curve}).count("With ") == 2


@pytest.mark.parametrize(
    "curve",
    [
        [],
        [point(100.0, padding=0.9)],
        [point(100.0), point(200.0, padding=0.1, size=8)],
        [point(100.0), point(200.0, padding=None, size=8)],
        [void(), point(200.0, padding=0.9, size=8)],
    ],
    ids=["nothing", "one point", "little padding", "not known", "void"],
)
def test_padding_that_is_small_unknown_or_not_measured_is_not_told(curve):
    assert padding_remark({"mixed lengths": curve}) == ""


@pytest.mark.parametrize(
    ("default", "recommended", "verdict"),
    [
        (point(100.0), point(200.0), "Confirmed: the recommended setting serves 2.00 x (1.96 to 2.04 x)"),
        (point(200.0), point(100.0), "Refuted: the recommended setting serves only 0.500 x (0.490 to 0.510 x)"),
        (point(100.0), point(101.0), "Inconclusive: the recommended setting serves 1.01 x (0.990 to 1.03 x)"),
        (point(100.0, spread=1.0), point(300.0), "Confirmed: the recommended setting serves 3.00 x (1.49 to ∞ x)"),
    ],
)
def test_a_recommendation_is_confirmed_refuted_or_left_open_by_the_intervals(default, recommended, verdict):
    told = comparison_verdict({"default": default, "recommended": recommended})
    assert told == f"{verdict} the throughput of the default."


@pytest.mark.parametrize("unsteady", ["default", "recommended"])
def test_a_verdict_says_when_either_was_not_steady(unsteady):
    compared = {"default": point(100.0), "recommended": point(200.0)}
    compared[unsteady]["grade"] = "unsteady"
    assert comparison_verdict(compared).startswith("Confirmed, though not in a steady state: the recommended")
    compared["recommended"]["throughput_rps"] = point(50.0)["throughput_rps"]
    assert comparison_verdict(compared).startswith("Refuted, though not in a steady state: the recommended")


@pytest.mark.parametrize("pair", [(void(), point(100.0)), (point(100.0), void())])
def test_a_void_point_leaves_it_open(pair):
    told = comparison_verdict(dict(zip(("default", "recommended"), pair, strict=True)))
    assert told == "Inconclusive: one of the two has no throughput, see its grade."


def test_a_throughput_without_an_interval_leaves_it_open():
    bare = point(100.0) | {"throughput_rps": {"value": 100.0, "low": None, "high": None}}
    told = comparison_verdict({"default": bare, "recommended": point(300.0)})
    assert told.startswith("Inconclusive: the recommended setting serves 3.00 x (0 to ∞ x) the throughput")
