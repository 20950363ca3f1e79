"""Does each setting stand at its throughput and its P99?"""

import pytest

from perfkit.showing.plots.tradeoff import plot_tradeoff, tradeoff_table


def test_points_are_labelled_and_doubtful_ones_are_off_the_line(points):
    figure = plot_tradeoff(tradeoff_table(points["workers"], "workers"), "workers")
    line, markers = figure.data[:2]
    assert line.x == (92.1, 151.6, 153.2)
    assert markers.text == ("1", "2", "4", "8")
    assert markers.x == (92.1, 151.6, 153.2, 139.9)
    assert markers.y == pytest.approx((236, 158, 203, 331))
    assert markers.marker.symbol[3] == "circle-open"


def test_a_p99_below_its_floor_stands_at_its_lower_end_as_an_arrow(points):
    table = tradeoff_table(points["mixed"], "batch.max_size")
    known = table[table["is_lower_bound"]]
    assert known["setting"].tolist() == [1, 2, 4, 16]
    assert known["latency_s"].tolist() == pytest.approx([0.93 * p99 for p99 in (0.702, 0.79, 0.91, 1.31)])
    markers = plot_tradeoff(table, "batch.max_size").data[1]
    assert markers.marker.symbol == ("arrow-up",) * 4


def test_the_budget_is_a_line_with_its_figure(points):
    figure = plot_tradeoff(tradeoff_table(points["workers"], "workers"), "workers", budget_s=0.2)
    assert [shape.y0 for shape in figure.layout.shapes] == [200.0]
    assert figure.layout.annotations[0].text == "P99 budget 200 ms"


def test_a_series_keeps_its_colour_when_another_has_no_result(points):
    for point in points["short"]:
        point |= {"grade": "void", "throughput_rps": None, "latency_s": {}}
    both = {"short": points["short"], "mixed": points["mixed"]}
    figure = plot_tradeoff(tradeoff_table(both, "batch.max_size"), "batch.max_size")
    assert [trace.name for trace in figure.data[:2]] == ["mixed: P99", "mixed: P99"]
    assert figure.data[0].line.color == "#e69f00"


def test_a_picture_without_any_result_says_so(points):
    for point in points["short"]:
        point |= {"grade": "void", "throughput_rps": None, "latency_s": {}}
    figure = plot_tradeoff(tradeoff_table(points["short"], "batch.max_size"), "batch.max_size")
    assert [note.text for note in figure.layout.annotations] == ["no point has a result"]
