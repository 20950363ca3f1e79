"""Does the ledger show each stage once, in order, with nothing hidden?"""

import pytest

from perfkit.records import STAGES
from perfkit.showing.plots.ledger import OTHER, ledger_table, plot_ledger


def test_only_stages_that_took_time_have_rows_and_their_shares_add_up(points):
    table = ledger_table(points["workers"], "workers")
    first = table[table["setting"] == 1]
    taken = [stage for stage in STAGES if points["workers"][0]["stages_s"].get(stage, 0.0) > 0]
    assert first["stage"].tolist() == taken
    assert first["share_ratio"].sum() == pytest.approx(1)


def test_segments_stack_in_the_order_of_the_ledger_and_small_ones_come_last(points):
    figure = plot_ledger(ledger_table(points["workers"], "workers"), "workers")
    assert [bar.name for bar in figure.data] == ["queue_wait", "compute", OTHER]


def test_the_bars_are_as_long_as_the_ledger_says(points):
    figure = plot_ledger(ledger_table(points["workers"], "workers"), "workers")
    totals = [sum(bar.x[at] for bar in figure.data) for at in range(4)]
    assert totals == [pytest.approx(1000 * sum(point["stages_s"].values())) for point in points["workers"]]


def test_stages_below_one_per_cent_are_listed_where_they_are_grouped(points):
    other = plot_ledger(ledger_table(points["workers"], "workers"), "workers").data[-1]
    lines = other.hovertext[0].split("<br>")
    assert [line.split(":")[0] for line in lines] == [
        stage for stage in STAGES if 0 < points["workers"][0]["stages_s"].get(stage, 0.0) < 0.01
    ]
    assert lines[0] == "send: 120 µs, 0.0703 % of the request"


def test_a_stage_that_matters_at_one_point_is_shown_at_all(points):
    points["workers"][0]["stages_s"]["wake_lag"] = 0.5
    figure = plot_ledger(ledger_table(points["workers"], "workers"), "workers")
    wake = next(bar for bar in figure.data if bar.name == "wake_lag")
    assert len(wake.x) == 4


def test_waits_are_hatched_and_work_is_not(points):
    bars = plot_ledger(ledger_table(points["workers"], "workers"), "workers").data
    assert {bar.name: bar.marker.pattern.shape for bar in bars} == {"queue_wait": "/", "compute": "", OTHER: ""}


def test_a_void_point_without_a_ledger_keeps_its_place_and_says_void(points):
    figure = plot_ledger(ledger_table({"mixed": points["mixed"]}, "batch.max_size"), "batch.max_size")
    assert figure.layout.yaxis.categoryarray[3] == "mixed, batch.max_size 8 [void]"
    assert all("mixed, batch.max_size 8 [void]" not in bar.y for bar in figure.data)


def test_every_stage_has_a_colour_of_its_own():
    point = {"varied": {"workers": 1}, "grade": "sound", "stages_s": dict.fromkeys(STAGES, 0.01)}
    bars = plot_ledger(ledger_table([point], "workers"), "workers").data
    assert [bar.name for bar in bars] == list(STAGES)
    assert len({bar.marker.color for bar in bars}) == len(STAGES)
