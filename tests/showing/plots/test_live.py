"""Does the live panel show readings as they came, with gaps where there were none?"""

from perfkit.showing.plots.live import live_table, plot_live

READINGS = [
    {"time_ns": 2_000_000_000, "throughput_rps": 150.0, "p50_s": 0.1, "p99_s": 0.2, "queued": 3, "threads": 8},
    {"time_ns": 1_000_000_000, "throughput_rps": 100.0, "p50_s": 0.11, "p99_s": 0.21, "queued": 0},
    {"time_ns": 3_500_000_000, "throughput_rps": None, "queued": 4},
]


def test_time_counts_from_the_first_reading_and_absent_figures_stay_absent():
    table = live_table(READINGS)
    assert table["elapsed_s"].tolist() == [0.0, 1.0, 2.5]
    assert table["throughput_rps"].isna().tolist() == [False, False, True]
    assert table["queued"].tolist() == [0.0, 3.0, 4.0]


def test_the_three_panels_show_throughput_quantiles_and_counts():
    figure = plot_live(live_table(READINGS), title="Live", simulated=True)
    drawn = {trace.name: (trace.yaxis, trace.y) for trace in figure.data}
    assert drawn == {
        "throughput": ("y", (100.0, 150.0, None)),
        "P50 of the reading": ("y2", (110.0, 100.0, None)),
        "P99 of the reading": ("y2", (210.0, 200.0, None)),
        "queued requests": ("y3", (0.0, 3.0, 4.0)),
        "model threads": ("y3", (None, 8.0, None)),
    }
    assert figure.layout.title.text == "Live (simulated)"


def test_no_reading_yet_is_an_empty_panel():
    figure = plot_live(live_table([]))
    assert [len(trace.x) for trace in figure.data] == [0, 0, 0, 0, 0]
