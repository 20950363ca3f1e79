"""Does the timeline put every request into the slice in which it was due?"""

import pandas
import pytest

from perfkit.clock import NS_PER_S
from perfkit.showing.plots.timeline import plot_timeline, timeline_table


def requests(due_s, latency_s, states=None):
    """A requests table; a latency of None is a request without a reply."""
    scheduled = [round((100 + due) * NS_PER_S) for due in due_s]
    received = [
        None if late is None else at + round(late * NS_PER_S) for at, late in zip(scheduled, latency_s, strict=True)
    ]
    table = pandas.DataFrame({"scheduled_ns": scheduled, "received_ns": received}, dtype="Int64")
    return table.assign(end_state=states or ["ok"] * len(due_s))


def test_a_request_counts_where_it_was_due_and_not_where_its_reply_came():
    table = timeline_table({"slow": requests([0, 1, 2, 30], [5, 7, 5, 1])})
    assert table["elapsed_s"].tolist()[:3] == [0.5, 1.5, 2.5]
    assert table["p50_s"].tolist()[:3] == [5, 7, 5]
    assert table["good_rps"].tolist()[:3] == [1, 1, 1]


def test_the_last_request_is_in_the_last_slice():
    table = timeline_table({"": requests([0, 3], [0.5, 0.25])})
    assert (len(table), table["p50_s"].iloc[-1], table["good_rps"].sum() * 0.1) == (30, 0.25, pytest.approx(2))


def test_replies_that_were_not_good_count_apart_and_have_no_latency():
    table = timeline_table({"": requests([0, 0.1, 30], [0.2, 0.01, 0.3], ["ok", "rejected", "ok"])})
    assert table[["good_rps", "other_rps", "p50_s", "worst_s"]].iloc[0].tolist() == [1, 1, 0.2, 0.2]


def test_a_slice_without_a_good_reply_is_a_gap_and_not_zero():
    table = timeline_table({"": requests([0, 30], [None, 0.3], ["timed_out", "ok"])})
    assert pandas.isna(table["p50_s"].iloc[0])
    assert (table["good_rps"].iloc[0], table["other_rps"].iloc[0]) == (0, 1)


def test_several_runs_share_the_slices_of_the_longest():
    table = timeline_table({"short": requests([0, 3], [0.1, 0.1]), "long": requests([0, 30], [0.1, 0.1])})
    assert table.groupby("series", sort=False).size().to_dict() == {"short": 3, "long": 30}


def test_each_series_is_one_legend_entry_with_its_own_colour():
    figure = plot_timeline(timeline_table({"a": requests([0, 3], [0.1, 0.2]), "b": requests([0, 3], [0.3, 0.1])}))
    shown = {trace.name: trace.line.color for trace in figure.data if trace.showlegend}
    assert (list(shown), len(set(shown.values()))) == (["a", "b"], 2)
    assert figure.layout.yaxis.title.text.startswith("latency (ms)")
