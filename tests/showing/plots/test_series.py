"""Are another tool's values over time drawn in units that people read?"""

import pandas

from perfkit.showing.plots.series import plot_series, series_table

COLUMNS = ["time_ns", "source", "name", "unit", "value"]


def frame(*rows):
    return pandas.DataFrame(rows, columns=COLUMNS)


def test_values_come_in_the_units_of_people_and_since_the_first():
    table = series_table(
        frame((5 * 10**9, "cpu", "busy", "ratio", 0.5), (7 * 10**9, "memory", "used", "bytes", 1 << 30))
    )
    assert table.to_dict("records") == [
        {"quantity": "busy (%)", "source": "cpu", "elapsed_s": 0.0, "value": 50.0},
        {"quantity": "used (GiB)", "source": "memory", "elapsed_s": 2.0, "value": 1.0},
    ]
    assert len(series_table(frame())) == 0


def test_long_lines_are_thinned():
    table = series_table(frame(*((n, "cpu", "busy", "ratio", 0.1) for n in range(5000))))
    assert len(table) == 1667


def test_a_source_keeps_its_colour_from_panel_to_panel():
    rows = [(n, source, name, "x", 1.0) for n in range(2) for source in ("a", "b") for name in ("p", "q")]
    figure = plot_series(series_table(frame(*rows)), title="<b>t</b>")
    assert [(trace.name, trace.line.color, trace.showlegend) for trace in figure.data] == [
        ("a", "#2b8cce", True),
        ("b", "#e69f00", True),
        ("a", "#2b8cce", False),
        ("b", "#e69f00", False),
    ]
