"""Does the scan curve show every point for what it is?"""

import pytest

from perfkit.errors import ConfigError
from perfkit.showing.plots.scan import plot_scan, scan_table


def trace_of(figure, name, mode):
    """The one trace with a name and a mode."""
    found = [trace for trace in figure.data if trace.name == name and trace.mode == mode]
    assert len(found) == 1, [(trace.name, trace.mode) for trace in figure.data]
    return found[0]


def test_a_point_becomes_one_row_with_every_interval(points):
    row = scan_table(points["workers"][:1], "workers").to_dict("records")
    assert row == [
        {
            "series": "",
            "setting": 1,
            "throughput_rps": 92.1,
            "throughput_low_rps": 92.1 * 0.965,
            "throughput_high_rps": 92.1 * 1.035,
            **{
                f"{quantile}_{column}": points["workers"][0]["latency_s"][quantile][key]
                for quantile in ("p50", "p95", "p99")
                for key, column in (("value", "s"), ("low", "low_s"), ("high", "high_s"), ("needs_s", "needs_s"))
            },
            "requests": 829,
            "grade": "sound",
            "reasons": "",
            "simulated": False,
            "place": 0.0,
        }
    ]


def test_rows_stand_in_the_order_of_the_setting_whatever_the_order_of_the_points(points):
    table = scan_table(list(reversed(points["workers"])), "workers")
    assert table["setting"].tolist() == [1, 2, 4, 8]
    assert table["place"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_settings_that_hold_zero_or_words_stand_one_step_apart(points):
    four = points["workers"]
    for point, delay in zip(four, (0.0, 0.001, 0.004, 0.016), strict=True):
        point["varied"] = {"batch.max_delay_s": delay}
    assert scan_table(four, "max_delay_s")["place"].tolist() == [0.0, 1.0, 2.0, 3.0]
    for point, placement in zip(four, ("threads", "inline", "threads", "inline"), strict=True):
        point["varied"] = {"preprocess.placement": placement}
    assert scan_table(four, "placement")["place"].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_setting_that_the_points_do_not_vary_is_refused_by_name(points):
    with pytest.raises(ConfigError, match="the point varies workers, not depth"):
        scan_table(points["workers"], "depth")


def test_unsteady_and_void_points_are_marked_and_not_joined(points):
    points["workers"][2]["grade"] = "void"
    figure = plot_scan(scan_table(points["workers"], "workers"), "workers")
    joined = trace_of(figure, "throughput", "lines")
    assert joined.y == (92.1, 151.6, None, None)
    assert not joined.connectgaps
    markers = trace_of(figure, "throughput", "markers")
    assert markers.y == (92.1, 151.6, 153.2, 139.9)
    assert markers.marker.symbol == ("circle", "circle", "x-thin-open", "circle-open")
    assert "unsteady: throughput of three windows: max/min 1.17" in markers.hovertext[3]
    keys = {trace.name for trace in figure.data if trace.x == (None,)}
    assert keys == {"unsteady: hollow, not joined", "void: crossed, no result", "↑ at least this"}


def test_intervals_reach_from_low_to_high(points):
    bars = trace_of(plot_scan(scan_table(points["workers"], "workers"), "workers"), "P99", "markers").error_y
    assert bars.array[0] == pytest.approx(236 * 0.12)
    assert bars.arrayminus[0] == pytest.approx(236 * 0.08)


def test_an_interval_without_an_upper_end_has_no_upper_bar_but_an_arrow(points):
    figure = plot_scan(scan_table(points["workers"], "workers"), "workers")
    assert trace_of(figure, "P99", "markers").error_y.array[2] is None
    arrows = trace_of(figure, "P99", "markers+text")
    assert (arrows.x, arrows.y, arrows.text) == ((2.0,), (203.0,), "↑")


def test_a_quantile_below_its_floor_is_an_arrow_at_its_lower_end(points):
    figure = plot_scan(scan_table(points["mixed"][:1], "batch.max_size"), "batch.max_size")
    assert trace_of(figure, "P99", "markers").y == (None,)
    arrows = trace_of(figure, "P99", "markers+text")
    assert arrows.y == (pytest.approx(702 * 0.93),)
    assert arrows.hovertext[0] == ("P99 at 1<br>at least 653 ms; a value needs 34.5 s<br>549 requests<br>short")


def test_a_void_point_without_any_figure_is_named_under_the_axis(points):
    figure = plot_scan(scan_table({"mixed": points["mixed"]}, "batch.max_size"), "batch.max_size")
    assert figure.layout.xaxis.ticktext == ("1", "2", "4", "8<br>void (mixed)", "16")


def test_two_payload_sets_are_two_series_with_their_own_knees(points):
    table = scan_table({"short": points["short"], "mixed": points["mixed"]}, "batch.max_size")
    knees = {"short": points["knee_short"], "mixed": points["knee_mixed"]}
    figure = plot_scan(table, "batch.max_size", knee=knees)
    in_legend = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert in_legend[:5] == ["short", "mixed", "P50", "P95", "P99"]
    bands = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert bands == [(2.0, 4.0), (2.0, 4.0), (0.0, 0.0), (0.0, 0.0)]
    assert {note.text for note in figure.layout.annotations} == {"short knee 4 to 16", "mixed knee 1"}


def test_the_knee_is_a_band_with_a_line_at_each_end_in_both_panels(points):
    figure = plot_scan(scan_table(points["workers"], "workers"), "workers", knee=points["knee_workers"])
    shapes = [(shape.type, shape.x0, shape.x1, shape.xref) for shape in figure.layout.shapes]
    assert shapes == [
        ("rect", 1.0, 2.0, "x"),
        ("rect", 1.0, 2.0, "x2"),
        ("line", 1.0, 1.0, "x"),
        ("line", 1.0, 1.0, "x2"),
        ("line", 2.0, 2.0, "x"),
        ("line", 2.0, 2.0, "x2"),
    ]


def test_axes_carry_units_and_simulated_points_say_so_in_the_title(points):
    points["workers"][0]["simulated"] = True
    figure = plot_scan(scan_table(points["workers"], "workers"), "workers", title="Threads")
    titles = [figure.layout[axis].title.text for axis in ("xaxis2", "yaxis", "yaxis2")]
    assert titles == ["workers", "throughput (req/s)", "latency (ms)"]
    assert figure.layout.title.text == "Threads (simulated)"


def test_markup_in_labels_stays_text(points):
    hostile = '<a href="javascript:alert(1)">x</a>'
    points["workers"][3]["reasons"] = [hostile]
    figure = plot_scan(scan_table({hostile: points["workers"]}, "workers"), hostile, title=hostile)
    assert "<a" not in figure.to_json().replace("\\u003c", "<")


def test_latencies_that_span_far_get_a_logarithmic_axis(points):
    points["workers"][0]["latency_s"]["p50"]["value"] = 0.001
    figure = plot_scan(scan_table(points["workers"], "workers"), "workers")
    assert figure.layout.yaxis2.type == "log"
