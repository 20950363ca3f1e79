"""Is the percentile curve made of the sample's own order statistics, out to its last request?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfkit.showing.plots.latency import latency_table, plot_latency


@given(st.lists(st.floats(min_value=1e-6, max_value=10), min_size=1, max_size=3000))
def test_the_curve_rises_through_the_sample_to_its_largest_latency(sample):
    table = latency_table({"run": sample})
    assert table["quantile_ratio"].is_monotonic_increasing
    assert table["latency_s"].is_monotonic_increasing
    assert set(table["latency_s"]) <= set(sample)
    assert (table["latency_s"].iloc[0], table["latency_s"].iloc[-1]) == (min(sample), max(sample))


def test_the_kth_of_n_stands_at_k_minus_a_half_over_n():
    table = latency_table({"run": [0.004, 0.001, 0.003, 0.002]})
    assert table.to_dict("list") == {
        "series": ["run"] * 4,
        "quantile_ratio": [0.125, 0.375, 0.625, 0.875],
        "latency_s": [0.001, 0.002, 0.003, 0.004],
        "count": [4] * 4,
    }


def test_a_million_requests_make_a_few_hundred_points():
    table = latency_table({"run": range(1, 1_000_001)})
    assert 200 < len(table) < 500


def test_each_nine_takes_the_same_width_and_the_axis_ends_with_the_sample():
    figure = plot_latency(latency_table({"run": [at / 1e6 for at in range(1, 2001)]}), simulated=True)
    assert figure.layout.xaxis.ticktext == ("50 %", "90 %", "99 %", "99.9 %")
    assert figure.layout.xaxis.tickvals[1:] == pytest.approx((1, 2, 3))
    assert figure.layout.title.text == "Latency by percentile (simulated)"
    assert figure.data[0].name == "run (2,000 requests)"


def test_a_series_without_requests_is_no_curve():
    assert len(plot_latency(latency_table({"run": []})).data) == 0
