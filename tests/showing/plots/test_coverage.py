"""Do a miss, an open end and the truth each look like what they are?"""

import pandas
import pytest

from perfkit.showing.plots.coverage import plot_coverage
from perfkit.showing.plots.look import BLUE, VERMILION

ROW = {"seconds": 30, "times": 33.4, "method": "perfkit", "truth_s": 0.2}
TABLE = pandas.DataFrame(
    [
        ROW | {"run": 0, "value_s": 0.19, "low_s": 0.1, "high_s": 0.3, "holds": True},
        ROW | {"run": 1, "value_s": 0.1, "low_s": 0.05, "high_s": 0.15, "holds": False},
        ROW | {"run": 2, "value_s": None, "low_s": 0.15, "high_s": None, "holds": True},
    ]
)


def marks(figure, color):
    """Runs and error bars of the intervals in a colour."""
    (found,) = [trace for trace in figure.data if trace.marker.color == color and trace.x != (None,)]
    return list(found.x), [round(value) for value in found.error_y.array], list(found.y)


def test_a_miss_has_its_own_colour_and_an_open_end_reaches_the_top():
    figure = plot_coverage(TABLE)
    assert marks(figure, BLUE) == ([0, 2], [110, 290], [190, 150])
    assert marks(figure, VERMILION) == ([1], [50], [100])
    assert list(figure.layout.yaxis.range) == pytest.approx([0, 440])


def test_the_truth_is_a_line_and_the_heading_counts_what_holds_it():
    figure = plot_coverage(TABLE)
    assert [shape.y0 for shape in figure.layout.shapes] == [200]
    assert figure.layout.annotations[0].text == "30 s, 33 relaxation times<br>perfkit: 66.7 % hold the truth"
    assert "(simulated)" in figure.layout.title.text
