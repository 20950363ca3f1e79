"""Does a contest measure what its sliders say, draw every side, and keep what was there before?"""

import json

import pytest

from perfkit.errors import ConfigError
from perfkit.measuring.load.loops import ClosedLoop
from perfkit.measuring.scanning.contrast import Question
from perfkit.showing.notebook.contest import Contest
from perfkit.showing.notebook.table import table_of, to_text

SIDES = {"alone": {}, "batched": {"batch.max_size": 8}}


@pytest.fixture(scope="module")
def contest(tmp_path_factory):
    """A contest on the no-op model, measured once with one worker and once with two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("contest"))
        question = Question(
            model="noop", sides=SIDES, name="concurrency", values=[1, 4], load=ClosedLoop(), seconds=0.2, rounds=1
        )
        made = Contest(question, {"workers": [1, 2]})
        made.measure()
        made.first = drawn(made)
        made._sliders["workers"].value = 2
        made.measure()
        yield made


def drawn(contest):
    """Name of a line that the legend shows -> what it shows of throughput."""
    figure = json.loads(contest._chart_box.children[0].figure)
    lines = [trace for trace in figure["data"] if trace.get("showlegend") and trace["mode"] == "lines"]
    return {trace["name"]: trace["y"] for trace in lines if trace.get("yaxis") == "y"}


def test_every_side_is_drawn_with_the_measured_throughput(contest):
    measured = {
        label: [point["throughput_rps"]["value"] if point["grade"] in ("sound", "short") else None for point in points]
        for label, points in contest.latest.series.items()
    }
    assert {name: drawn(contest)[name] for name in SIDES} == measured


def test_a_slider_changes_what_all_sides_share(contest):
    workers = {point["settings"]["workers"] for point in contest.latest.scan.points}
    assert workers == {2}
    assert [point["settings"]["batch"]["max_size"] for point in contest.latest.scan.points] == [1, 1, 8, 8]


def test_what_was_measured_before_stays_behind_the_new_curves(contest):
    assert list(contest.first) == list(SIDES)
    assert set(drawn(contest)) == {*SIDES, "alone: before", "batched: before"}


def test_the_chart_is_redrawn_in_place(contest):
    assert len(contest._chart_box.children) == 1


def test_what_goes_wrong_is_written_and_raised():
    wrong = Question(model="noop", sides={"x": {"workers": 0}}, name="concurrency", values=[1], load=ClosedLoop())
    contest = Contest(wrong)
    with pytest.raises(ConfigError, match="workers is 0"):
        contest.measure()
    assert "workers is 0" in contest._problem.value
    assert contest._button.disabled is False


def test_waiting_for_nothing_is_refused():
    contest = Contest(Question(model="noop", sides=SIDES, name="concurrency", values=[1], load=ClosedLoop()))
    with pytest.raises(ConfigError, match="nothing was measured"):
        contest.wait()


def test_the_table_of_a_contrast_has_a_row_for_each_side_and_value(contest):
    lines = to_text(table_of(contest.latest)).splitlines()
    assert [line.partition("  ")[0] for line in lines[1:6]] == [
        "concurrency",
        *("alone, 1", "alone, 4", "batched, 1", "batched, 4"),
    ]
