"""Are the fits drawn where they speak, and nowhere else?"""

import pytest

from perfkit.showing.plots.fits import fit_lines
from perfkit.showing.plots.points import knee_text
from perfkit.showing.plots.scan import plot_scan, scan_table

NONE = {"refusal": "why not"}
USL = {
    "refusal": None,
    "curve": [{"users": n, "value": 10.0 * n, "low": 9.0 * n, "high": 11.0 * n} for n in (1.0, 2.0, 4.0, 8.0, 12.0)],
}
BOUNDS = {
    "refusal": None,
    "alone_rps": {"value": 10.0, "low": None, "high": None},
    "ceiling_rps": {"value": 40.0, "low": None, "high": None},
}
MODEL = {
    "refusal": None,
    "workers": 2,
    "reach": 6.0,
    "fixed_s": {"value": 0.01},
    "per_request_s": {"value": 0.0025},
}
REFUSED = {"usl": NONE, "bounds": NONE, "batch_model": NONE, "device_model": NONE}


def test_refused_fits_and_absent_ones_draw_nothing():
    assert fit_lines(REFUSED, "load.concurrency", [1, 2, 4]) == []
    assert fit_lines(None, "load.concurrency", [1, 2, 4]) == []
    assert fit_lines(REFUSED | {"usl": USL}, "load.concurrency", [4]) == []


def test_the_law_is_drawn_over_what_was_measured_with_its_band():
    (line,) = fit_lines(REFUSED | {"usl": USL}, "load.concurrency", [1, 2, 4, 8])
    assert (line.label, line.at, line.rps) == ("USL", (1.0, 2.0, 4.0, 8.0), (10.0, 20.0, 40.0, 80.0))
    assert (line.low[-1], line.high[-1]) == (72.0, 88.0)
    assert line.texts[0] == "USL at 1: 10.0 req/s (9.00 to 11.0 req/s)"


def test_the_bounds_cross_and_the_first_ends_a_little_above_the_second():
    slope, ceiling = fit_lines(REFUSED | {"bounds": BOUNDS}, "load.concurrency", [1, 2, 4, 8])
    assert (slope.label, ceiling.label) == ("10.0 req/s a user", "at most 40.0 req/s")
    assert (slope.at[0], slope.rps[0]) == (1.0, 10.0)
    assert (slope.at[-1], slope.rps[-1]) == pytest.approx((4.48, 44.8))
    assert (ceiling.at, ceiling.rps) == ((1.0, 8.0), (40.0, 40.0))


def test_full_batches_are_drawn_over_the_batch_size_as_far_as_the_model_speaks():
    fits = REFUSED | {"batch_model": MODEL}
    (line,) = fit_lines(fits, "batch.max_size", [1, 2, 4, 8])
    assert (line.at[0], line.at[-1]) == pytest.approx((1.0, 4.0))
    assert (line.rps[0], line.rps[-1]) == pytest.approx((2 / 0.0125, 8 / 0.02))
    assert fit_lines(fits, "load.concurrency", [1, 2, 4, 8]) == []
    assert fit_lines(REFUSED | {"batch_model": MODEL | {"workers": None}}, "batch.max_size", [1, 2]) == []


def test_lines_lie_in_the_upper_panel_with_their_labels_beside_them(points):
    table = scan_table(points["workers"], "workers")
    figure = plot_scan(table, "workers", fits=REFUSED | {"usl": USL, "bounds": BOUNDS})
    drawn = {trace.name: trace for trace in figure.data if trace.name in ("USL", "at most 40.0 req/s")}
    assert set(drawn) == {"USL", "at most 40.0 req/s"}
    assert {trace.yaxis for trace in drawn.values()} == {"y"}
    assert drawn["USL"].x == (0.0, 1.0, 2.0, 3.0)
    labels = {note.text: (note.x, note.y) for note in figure.layout.annotations}
    assert labels["USL"] == (3.0, 80.0)
    assert labels["at most 40.0 req/s"] == (0.0, 40.0)
    band = next(trace for trace in figure.data if trace.fill == "toself")
    assert band.y == (11.0, 22.0, 44.0, 88.0, 72.0, 36.0, 18.0, 9.0)


def test_over_several_series_no_fit_is_drawn(points):
    table = scan_table({"short": points["short"], "mixed": points["mixed"]}, "batch.max_size")
    figure = plot_scan(table, "batch.max_size", fits=REFUSED | {"batch_model": MODEL})
    assert not [trace for trace in figure.data if trace.name == "always full batches"]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(4, 4.0, "4"), (4.0, 16, "4 to 16"), (9.9219, 1024, "9.92 to 1024"), (0.25, 0.5, "0.250 to 0.500")],
)
def test_the_ends_of_a_knee_read_as_settings_or_to_three_digits(low, high, text):
    assert knee_text({"low": low, "high": high}) == text
