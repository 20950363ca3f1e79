"""All fits of a scan in one record: its figures, its sentences, and that it never raises."""

import json

import pytest

from perfkit.measuring.analysis.scaling.fits import fit_scaling
from perfkit.measuring.analysis.scaling.wording import scaling_sentences

USERS = (1, 2, 4, 8, 16, 32, 64)


def sentences(points):
    """Through JSON, as an archive holds it."""
    return scaling_sentences(json.loads(json.dumps(fit_scaling(points).to_json(), allow_nan=False)))


def test_a_fit_says_what_limits_the_service_and_where_the_peak_is(curve, law):
    limit, bounds, batches, estimators = sentences(curve({n: law(n, 100.0, 0.03, 0.0005) for n in USERS}))
    assert limit.startswith("What limits it: contention s = 0.0300 (0.02")
    assert "at 64 users a turn is 20.4 % own work, 38.5 % contention and 41.1 % coherence. Peak at 44.0 users" in limit
    assert bounds.startswith("Bounds: 100 req/s (99.8 to 100 req/s) for each user, 1,319 req/s")
    assert batches.startswith("Batch model: none: batch sizes seen in 5 calls or more: none;")
    assert estimators == "Estimators of the knee that say nothing: latency budget: no latency budget was given."


def test_a_reason_that_two_fits_share_is_said_once(curve):
    first, *rest = sentences(curve({1: 10.0, 2: 20.0, 4: 20.0}, name="workers"))
    assert first == ("No USL fit and no bounds: workers is no number of users; vary load.concurrency in a closed loop.")
    assert not any("USL" in text for text in rest)


def test_a_bend_of_kneedle_alone_is_named_and_not_called_a_knee(curve, law):
    texts = sentences(curve({n: law(n, 10.0, 0.02, 0.0) for n in USERS}))
    assert "Knee: none: Kneedle at 32" in texts[3]
    assert texts[3].endswith("alone is no knee, it moves with the range.")


def test_calls_say_what_a_full_batch_can_give(curve):
    calls = [
        {"size": b, "batches": 50, "occupied_s": 0.0123 + 0.0021 * b, "compute_s": 0.0051 + 0.0011 * b}
        | {"occupied_sd_s": 0.0001, "compute_sd_s": 0.0001}
        for b in (1, 2, 4, 10)
    ]
    points = curve({1: 10.0, 2: 20.0}, name="batch.max_size", calls=calls, settings={"device": "cpu"})
    text = sentences(points)[0]
    assert text.startswith("Batch model: a call keeps a worker 12.3 ms (12.3 to 12.3 ms) and 2.10 ms (2.1")
    assert "of which the device computes 5.10 ms (5.09" in text
    assert text.endswith("(batches of 1 to 10); 1 worker with full batches can do 300 req/s.")


def test_workers_in_each_others_way_leave_the_device_its_line(curve):
    calls = [
        {"size": b, "batches": 50, "occupied_s": 0.02 if b > 2 else 0.01, "compute_s": 0.0051 + 0.0011 * b}
        | {"occupied_sd_s": 0.0001, "compute_sd_s": 0.0001}
        for b in (1, 2, 4, 10)
    ]
    text = sentences(curve({1: 10.0, 2: 20.0}, name="batch.max_size", calls=calls))[1]
    assert text.startswith("Batch model: none: calls of 4 took")
    assert "workers in each other's way); the device computes 5.10 ms" in text


@pytest.mark.parametrize("grade", ["sound", "short", "unsteady", "void"])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_whatever_the_points_lack_there_is_an_answer(curve, grade, count):
    points = curve({n: 10.0 * n for n in USERS[:count]}, grade=grade)
    nothing = {"value": None, "low": None, "high": None}
    points = [one | ({"throughput_rps": nothing} if grade == "void" else {}) for one in points]
    found = fit_scaling(points)
    assert str(found)
    assert found.knee is None
    assert set(found.to_json()) == {"knee", "knee_estimates", "fits"}
