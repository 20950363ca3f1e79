"""Does the picture of a comparison hold every pair, the shift with its interval, and the verdict?"""

import dataclasses
from pathlib import Path

import pytest

from perfkit.measuring.analysis.compare.replicate import Replicate
from perfkit.measuring.analysis.compare.verdict import Rule, compare_replicates
from perfkit.measuring.comparing.comparison import Comparison
from perfkit.showing.plots.compare import compare_table, plot_compare

RUN = Replicate(
    run_id="made",
    created="2026-01-01T00:00:00+00:00",
    grade="sound",
    reasons=(),
    requests=1_000,
    values={"throughput_rps": 100.0, "p50_s": 0.01, "p95_s": None, "p99_s": None},
    error_ratio=0.0,
    stolen_ratio=0.001,
    load_average=0.5,
)


@pytest.fixture
def comparison():
    """Eight pairs in which B is ten per cent slower in throughput and P50 is the same."""
    a = tuple(RUN for _ in range(8))
    b = tuple(dataclasses.replace(RUN, values={**RUN.values, "throughput_rps": 90.0}) for _ in range(8))
    return Comparison(
        labels=("old <b>", "new"),
        simulated=True,
        findings=compare_replicates(a, b, True, Rule()),
        rule=Rule(),
        runs_a=a,
        runs_b=b,
        notes=(),
        folders=(Path("it"),),
    )


def test_the_table_holds_each_pair_and_the_shift_of_each_judged_metric(comparison):
    table = compare_table(comparison)
    assert table.groupby(["metric", "kind"]).size().to_dict() == {
        ("P50", "pair"): 8,
        ("P50", "shift"): 1,
        ("throughput", "pair"): 8,
        ("throughput", "shift"): 1,
    }
    shift = table[table["kind"] == "shift"].set_index("metric")
    assert shift["verdict"].to_dict() == {"throughput": "slower", "P50": "no difference"}
    assert shift["change_ratio"].to_dict() == pytest.approx({"throughput": -0.1, "P50": 0.0})
    assert table.loc[table["kind"] == "pair", "text"].iloc[0] == "100 req/s → 90.0 req/s"


def test_the_picture_has_its_points_its_interval_and_no_markup_of_the_users(comparison):
    figure = plot_compare(compare_table(comparison), title=comparison.title)
    assert figure.layout.title.text == "new against old &lt;b&gt;: slower (simulated)"
    estimates = [trace for trace in figure.data if trace.text]
    assert [trace.text[0] for trace in estimates] == ["no difference 0 %", "slower -10.0 %"]
    assert [list(trace.error_x.array) for trace in estimates] == [[pytest.approx(0)], [pytest.approx(0)]]
    assert list(figure.layout.yaxis.categoryarray) == ["P50", "throughput"]


def test_runs_that_were_not_interleaved_stand_each_against_the_median_of_a(comparison):
    alone = dataclasses.replace(
        comparison,
        findings=compare_replicates(comparison.runs_a[:4], comparison.runs_b, False, Rule()),
        runs_a=comparison.runs_a[:4],
    )
    table = compare_table(alone)
    rows = table[(table["metric"] == "throughput") & (table["kind"] == "pair")]
    assert rows["change_ratio"].tolist() == pytest.approx([-0.1] * 8)
