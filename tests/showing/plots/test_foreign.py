"""Does the plot of foreign levels show the file's own figures over the load?"""

from perfkit.measuring.importers.imported import Level
from perfkit.showing.plots.foreign import foreign_table, plot_foreign

LEVELS = [
    Level(name="four", concurrency=4, throughput_rps=39.0, mean_s=0.1, percentiles_s={0.99: 0.2}),
    Level(name="one", concurrency=1, throughput_rps=10.0, mean_s=0.09, percentiles_s={0.99: 0.11}),
    Level(name="no load known", throughput_rps=1.0),
]


def test_levels_are_put_in_the_order_of_their_load():
    table = foreign_table(LEVELS)
    assert table["load"].tolist() == [1, 4]
    assert table["p99_s"].tolist() == [0.11, 0.2]


def test_curves_that_the_file_does_not_hold_are_left_out():
    figure = plot_foreign(foreign_table(LEVELS), title="<b>table</b>")
    assert [(trace.name, list(trace.x)) for trace in figure.data] == [
        ("throughput", [1, 4]),
        ("mean", [1, 4]),
        ("P99", [1, 4]),
    ]
    bare = plot_foreign(foreign_table([Level(name="x", concurrency=1, throughput_rps=5.0)]), title="bare")
    assert [trace.name for trace in bare.data] == ["throughput"]
