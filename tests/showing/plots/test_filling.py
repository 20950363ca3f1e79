"""Does the curve of a filling queue average the right requests, and does it show where it is going?"""

import numpy
import pytest

from perfkit.showing.plots.filling import plot_filling


def test_the_curve_is_the_mean_over_the_runs_and_the_line_the_steady_mean():
    latency_s = numpy.array([[0.01, 0.02, 0.03], [0.03, 0.04, 0.05]])
    figure = plot_filling(latency_s, rate_rps=10, steady_s=0.05)
    (curve,) = figure.data
    assert (list(curve.x), list(curve.y)) == ([0.1, 0.2, 0.3], pytest.approx([20, 30, 40]))
    assert figure.layout.shapes[0].y0 == 50
    assert "(simulated)" in figure.layout.title.text
