"""Do the views of the notebook on trust show what was measured, and the audit what cannot be right?"""

import json

import pandas
import pytest

from perfkit.explaining.twin.single_server import SingleServer
from perfkit.resources import data_path
from perfkit.showing.notebook.trust_views import audited, averaged, coverage, filling, slower_than, tradeoff

QUEUE = SingleServer(load_ratio=0.5)


class RunOf:
    """A run that holds this requests table."""

    grade = "short"

    def __init__(self, due_s, latency_s, end_states):
        nanoseconds = {
            "scheduled_ns": due_s,
            "received_ns": [at + late for at, late in zip(due_s, latency_s, strict=True)],
        }
        columns = {name: [round(value * 1e9) for value in values] for name, values in nanoseconds.items()}
        self._requests = pandas.DataFrame(columns, dtype="Int64").assign(end_state=end_states)

    def table(self, name):
        assert name == "requests"
        return self._requests


@pytest.fixture
def stalled():
    """Three quick replies, one that took a second, and one that never came."""
    return RunOf([0, 0.5, 1, 1.5, 2], [0.01, 0.01, 1.0, 0.03, 0.5], ["ok"] * 4 + ["timed_out"])


def test_requests_above_a_limit_are_counted_among_the_good_replies(stalled):
    (row,) = slower_than({"clock": stalled}, 0.1).to_dict("records")
    assert row == {"requests": 4, "slower than 100 ms": "1 (25.0 %)", "slowest": "1.00 s", "grade": "short"}


def test_an_average_of_seconds_stands_beside_the_quantile_of_all(stalled):
    values = averaged(stalled, p=0.5)["P50"]
    assert values.to_dict() == {
        "average of the P50 of each second": "262 ms",
        "the worst of them": "515 ms",
        "P50 of all requests": "20.0 ms",
    }


def test_scans_that_vary_different_settings_share_one_picture(scan):
    chart = tradeoff({"morning": scan, "evening": scan}, {"morning": "workers", "evening": "workers"})
    names = {trace["name"] for trace in json.loads(chart.figure)["data"]}
    assert {"morning: P99", "evening: P99"} <= names


def test_virtual_queues_are_labelled_simulated():
    charts = (coverage(QUEUE, [5], runs=3), filling(QUEUE, 2, runs=3))
    titles = [json.loads(chart.figure)["layout"]["title"]["text"] for chart in charts]
    assert titles == ["P99 of a queue at load 0.5 (simulated)", "A queue at load 0.5 that starts empty (simulated)"]


def test_a_published_table_shows_its_rows_and_what_cannot_be_right():
    page = audited(data_path("published", "article_concurrency.csv")).value
    assert "concurrency 40" in page
    assert "55.0 requests in flight, more than the 40 there can be" in page
    assert "row 3, little" not in page


def test_a_file_of_another_tool_is_escaped(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("concurrency,mean latency,QPS\n1,10 ms,<b>90</b>\n2,20 ms,90\n")
    assert "<b>90" not in audited(file).value


def test_a_file_without_a_contradiction_says_what_that_is_worth(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("concurrency,mean latency,QPS\n1,10 ms,90\n2,20 ms,90\n4,44 ms,90\n")
    assert "which does not make it true" in audited(file).value
